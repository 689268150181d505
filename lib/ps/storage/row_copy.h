// A snapshot of the rows of a sparse shard with their keys, in the order in which they were made.
// SPDX-License-Identifier: Apache-2.0
//
// It walks through the store's index, which has the key of each row, while keys are added and
// erased. Rows that were made after the snapshot, also in the place of erased ones, are not copied.
#pragma once
#include "ps/storage/gradual_copy.h"
#include "ps/storage/row_store.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace dtrain::ps {

// Numbers rows consecutively, without those that were erased.
class DenseRanks {
  public:
    // For `count` rows, of which `holes` were erased; false: no memory.
    bool allocate(uint32_t count, const std::vector<uint32_t> &holes);
    bool hole(uint32_t row) const { return any_ && holes_.marked(row); }
    uint32_t of(uint32_t row) const;

  private:
    static constexpr uint32_t group = 512; // rows per entry of before_
    bool any_ = false;
    Marks holes_;
    std::vector<uint32_t> before_; // by group: the number of holes before it
};

class RowCopy final : public GradualCopy {
  public:
    // Begins a copy of the rows as they are now, into buffers that must have room for them. The
    // store must live until settle() or the end of the copy. nullptr: no memory.
    static std::shared_ptr<RowCopy> begin(const RowStore &store, std::shared_ptr<Buffer> keys,
                                          std::shared_ptr<Buffer> rows);

    // Call it before rows are changed or erased.
    void before_change(const uint64_t *keys, size_t count);
    // Continues with this store, which has the same rows and will not change any more.
    void settle(std::shared_ptr<const RowStore> store);

  private:
    RowCopy(const RowStore &store, std::shared_ptr<Buffer> keys, std::shared_ptr<Buffer> rows);
    bool copy_more(uint64_t bytes) override;
    void let_go() override;
    bool due(uint32_t row) const { return row < made_ && !ranks_.hole(row) && !marks_.marked(row); }
    void copy(uint64_t key, uint32_t row);

    const RowStore *from_;
    std::shared_ptr<const RowStore> settled_;
    const std::shared_ptr<Buffer> keys_, rows_;
    const uint64_t row_bytes_;
    const uint32_t made_; // number of rows at the snapshot, with the holes
    DenseRanks ranks_;
    Marks marks_;
    RowStore::Scan scan_;
};

} // namespace dtrain::ps
