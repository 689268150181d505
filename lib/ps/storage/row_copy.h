// A copy of the rows of a sparse shard, with their keys, in the order in which they were made.
// SPDX-License-Identifier: Apache-2.0
//
// It goes through the index of the store, which knows the key of a row, while keys come and go:
// rows that were made since, also in the place of erased ones, are not those of that moment.
#pragma once
#include "ps/storage/gradual_copy.h"
#include "ps/storage/row_store.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace dtrain::ps {

// The places of rows without those that were erased.
class DenseRanks {
  public:
    // Of `count` rows without these; false: no memory.
    bool allocate(uint32_t count, const std::vector<uint32_t> &holes);
    bool hole(uint32_t row) const { return any_ && holes_.marked(row); }
    uint32_t of(uint32_t row) const;

  private:
    static constexpr uint32_t group = 512; // rows that are counted together
    bool any_ = false;
    Marks holes_;
    std::vector<uint32_t> before_; // each group: holes
};

class RowCopy final : public GradualCopy {
  public:
    // As they are now; room for them. The store stays there as long as it is not settled. nullptr:
    // no memory.
    static std::shared_ptr<RowCopy> begin(const RowStore &store, std::shared_ptr<Buffer> keys,
                                          std::shared_ptr<Buffer> rows);

    // Also before they are erased.
    void before_change(const uint64_t *keys, size_t count);
    // Goes on with the store itself, which nobody changes any more.
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
    const uint32_t made_; // rows, with the holes
    DenseRanks ranks_;
    Marks marks_;
    RowStore::Scan scan_;
};

} // namespace dtrain::ps
