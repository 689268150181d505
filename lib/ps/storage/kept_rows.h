// Rows that pushes in flight may still make in a store, for which room is kept.
// SPDX-License-Identifier: Apache-2.0
//
// Pushes may share keys; each row counts once, and only while it does not exist. If a row is erased
// meanwhile, any of the pushes may make it again, so it counts until no push is in flight.
#pragma once
#include "ps/storage/row_store.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtrain::ps {

class KeptRows {
  public:
    void begin() { under_way_++; } // a push begins
    // Ends a push that has kept these keys.
    void end(const RowStore &store, const std::vector<uint64_t> &kept);
    bool any() const { return under_way_ > 0; }
    bool keeps(uint64_t key) const; // whether some push keeps it
    const RowStore::Growth &growth() const { return growth_; }
    uint64_t size() const { return keys_.size(); } // different keys

    // Keeps keys of a push, and adds those without a row to `kept`, the push's list. False: no
    // memory, and nothing has changed.
    bool keep(const RowStore &store, const uint64_t *keys, size_t count,
              std::vector<uint64_t> &kept);
    void made(uint64_t key) {
        if (keeps(key)) growth_.remove(key);
    }
    void erased(uint64_t key); // after an existing row was erased
    void recount(const RowStore &store);

  private:
    uint32_t *pushes_of(uint64_t key) const; // the key's count in keys_; nullptr: it is not kept

    uint32_t under_way_ = 0;          // pushes in flight
    RowStore keys_{sizeof(uint32_t)}; // by key: number of pushes, plus 1 each time it was erased
    RowStore::Growth growth_;
};

} // namespace dtrain::ps
