// Rows that pushes under way may still make in a store: room is kept for them.
// SPDX-License-Identifier: Apache-2.0
//
// Pushes may share keys; each row counts once, and only while it is not there. A row that is erased
// meanwhile may be made again by any of them, so it counts until none is under way.
#pragma once
#include "ps/storage/row_store.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtrain::ps {

class KeptRows {
  public:
    void begin() { under_way_++; } // a push
    // Ends one that has kept these.
    void end(const RowStore &store, const std::vector<uint64_t> &kept);
    bool any() const { return under_way_ > 0; }
    bool keeps(uint64_t key) const; // for some push
    const RowStore::Growth &growth() const { return growth_; }
    uint64_t size() const { return keys_.size(); } // different ones

    // For the push that has kept those. False: no memory, and nothing has changed.
    bool keep(const RowStore &store, const uint64_t *keys, size_t count,
              std::vector<uint64_t> &kept);
    void made(uint64_t key) {
        if (keeps(key)) growth_.remove(key);
    }
    void erased(uint64_t key); // of a row that was there
    void recount(const RowStore &store);

  private:
    uint32_t *pushes_of(uint64_t key) const; // nullptr: it keeps none

    uint32_t under_way_ = 0;
    RowStore keys_{sizeof(uint32_t)}; // by key: how many pushes, and one more once it was erased
    RowStore::Growth growth_;
};

} // namespace dtrain::ps
