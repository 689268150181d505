// What a sparse shard holds, apart from it: on its way to a checkpoint, or from one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/storage/row_copy.h"
#include "ps/storage/row_store.h"
#include "ps/storage/sparse_shard.h"
#include "ps/table/buffer.h"
#include "ps/table/reserve.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::ps {

struct RowImage {
    explicit RowImage(const TableParams &table)
        : params(table), layout(table), store(layout.bytes, 0) {}

    // A part of each row that is an array of the file.
    struct Column {
        std::string name;
        uint32_t dtype;
        uint64_t at, bytes; // in a row
        uint64_t width;     // numbers; 0: one, not an array of them
    };
    static std::vector<Column> columns_of(const TableParams &params); // as ShardImage::arrays()

    TableParams params;
    RowLayout layout;
    uint64_t updates = 0, clock = 0;
    double rate = 0;
    // To a checkpoint: `count` of each, one after the other; as long as the copy goes on, they are
    // still to come.
    std::shared_ptr<Buffer> keys, rows;
    uint64_t count = 0;
    std::shared_ptr<RowCopy> copy;
    bool allocate(uint64_t count); // and some more, for other images; false: no memory
    bool reuse(RowImage &&other, uint64_t count); // its memory; false: there is too little of it
    bool lend() const { return keys->lend() && rows->lend(); } // while nobody needs the image
    // From one; make_room() lets it have more rows than it has.
    RowStore store;
    Status make_room(const Reserve &reserve);

  private:
    uint64_t reserved_ = 0;
};

} // namespace dtrain::ps
