// An image of a storage's contents, to be written to a checkpoint or read from one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/storage/gradual_copy.h"
#include "ps/table/table_params.h"

#include <cstdint>
#include <memory>

namespace dtrain::ps {

struct RowImage;
struct ShardImage;

struct Image {
    explicit Image(const TableParams &table) : params(table) {}
    virtual ~Image() = default;

    virtual bool lend() const = 0; // lends its memory while the image is not needed
    // The bytes to charge while the image is kept after it was read; charged: while it was read.
    virtual uint64_t kept_bytes(uint64_t charged) const = 0;
    // Makes an image that was copied from a storage ready to be adopted by another, once its copy
    // is done. False: no memory.
    virtual bool finish() { return true; }
    // The image as what it is; nullptr: it is of the other kind.
    virtual ShardImage *as_shard() { return nullptr; }
    virtual RowImage *as_rows() { return nullptr; }

    TableParams params;
    uint64_t updates = 0, clock = 0;
    double rate = 0;
    std::shared_ptr<GradualCopy> copy; // when it is done, the image is complete; nullptr: none
};

} // namespace dtrain::ps
