// The room that the pushes in flight of one worker keep in a sparse table.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/storage/sparse_shard.h"
#include "ps/table/protocol.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace dtrain::ps {

class KeptRooms {
  public:
    // Keeps room for keys of a push, in addition to those that it has kept before. push: the
    // worker's number for it; sum: the number of the sum that will collect it, if any.
    // Reason::window: the worker has too many pushes in flight.
    Reason keep(SparseShard &rows, uint64_t push, std::optional<uint32_t> sum, const uint64_t *keys,
                size_t count);
    uint64_t newest() const { return rooms_.rbegin()->first; } // of the pushes in flight
    bool empty() const { return rooms_.empty(); }
    // Ends one push, or all of them. rows: may be nullptr if the rows are gone.
    void end(SparseShard *rows, uint64_t push);
    void end_all(SparseShard *rows);

  private:
    std::map<uint64_t, KeptRoom> rooms_; // by the worker's number of the push
};

} // namespace dtrain::ps
