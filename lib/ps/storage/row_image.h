// An image of a sparse shard's contents, to be written to a checkpoint or read from one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/storage/image.h"
#include "ps/storage/row_store.h"
#include "ps/storage/sparse_shard.h"
#include "ps/table/buffer.h"
#include "ps/table/reserve.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::ps {

struct RowImage final : Image {
    explicit RowImage(const TableParams &table)
        : Image(table), layout(table), store(layout.bytes, 0) {}

    bool lend() const override { return keys->lend() && rows->lend(); }
    uint64_t kept_bytes(uint64_t) const override { return store.memory(); }
    bool finish() override; // moves the rows into `store`
    RowImage *as_rows() override { return this; }

    // A part of each row that is stored as one array in the file.
    struct Column {
        std::string name;
        uint32_t dtype;
        uint64_t at, bytes; // place and size in a row
        uint64_t width;     // numbers per row; 0: one number, so the array has one dimension
    };
    static std::vector<Column> columns_of(const TableParams &params); // like ShardImage::arrays()

    RowLayout layout;
    // To a checkpoint: `count` keys and rows, both contiguous. They are complete when the copy is
    // done.
    std::shared_ptr<Buffer> keys, rows;
    uint64_t count = 0;
    bool allocate(uint64_t count); // with some extra for later images; false: no memory
    bool reuse(RowImage &&other, uint64_t count); // takes its memory; false: it is too small
    // From a checkpoint: the rows read so far. make_room() reserves memory for more rows.
    RowStore store;
    Status make_room(const Reserve &reserve);

  private:
    uint64_t reserved_ = 0;
};

} // namespace dtrain::ps
