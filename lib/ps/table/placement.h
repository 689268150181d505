// Where the parts of a table are put: what its creator says of it, checked and complete. Clients
// and servers make the same map of it (placement_map.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"
#include "dtrain.h"

#include <cstdint>
#include <vector>

namespace dtrain::ps {

struct TableParams;

// Fields as in dtrain_table_params_t.
struct Placement {
    uint32_t policy = DTRAIN_PLACE_RANGE, virtual_nodes = 0;
    uint64_t block = 0; // dense HASH, CONSISTENT, USER: elements that are placed together
    uint64_t key_count = 0, split_bytes = 0;
    uint32_t home = 0;                  // ROUND_ROBIN, GREEDY: on server home - 1; 0: on all
    std::vector<uint32_t> weights = {}; // by server; empty: all equal
    std::vector<uint16_t> owners = {};  // USER: by block
    bool operator==(const Placement &) const = default;
};

inline constexpr uint64_t most_blocks = 16384; // of a dense table, and that a callback is asked for
inline constexpr uint32_t most_virtual_nodes = 1024;

inline bool on_one_server(const Placement &placement) {
    return placement.policy == DTRAIN_PLACE_ROUND_ROBIN || placement.policy == DTRAIN_PLACE_GREEDY;
}
inline bool by_user(const Placement &placement) { return placement.policy == DTRAIN_PLACE_USER; }

// The blocks that a callback is asked for: the first of each, and how many, of elements or keys.
struct Blocks {
    uint64_t count = 0, size = 0;
    uint64_t items = 0; // in all of them; 0: 2^64
    uint64_t first(uint64_t block) const { return block * size; }
    uint64_t items_of(uint64_t block) const {
        return block + 1 < count || items == 0 ? size : items - first(block);
    }
};
Blocks blocks_of(const TableParams &params);
// Of keys: the least size that is a power of two and leaves at most so many blocks (> 1, a power of
// two); key_count 0: 2^64.
Blocks key_blocks(uint64_t key_count, uint64_t most);

// The caller's numbers with defaults; the rest of params is complete but for the placement. Home,
// weights and owners are for whoever knows the servers.
void resolve_placement(const dtrain_table_params_t &given, TableParams &params);
// What is wrong, or nullptr. Home, weights and owners are looked at by fits_servers().
const char *bad_placement(const TableParams &params);
// Home, weights and owners fit a job with so many servers.
bool fits_servers(const TableParams &params, uint32_t servers);

} // namespace dtrain::ps
