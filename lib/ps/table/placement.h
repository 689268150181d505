// The placement of a table's parts on servers, as given by the creator, checked and with defaults.
// Clients and servers derive the same map from it (placement_map.h).
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
    uint64_t block = 0; // dense table with HASH, CONSISTENT, USER: elements placed together
    uint64_t key_count = 0, split_bytes = 0;
    uint32_t home = 0;                  // ROUND_ROBIN, GREEDY: server number + 1; 0: all servers
    std::vector<uint32_t> weights = {}; // by server; empty: all equal
    std::vector<uint16_t> owners = {};  // USER: by block
    // If above 0, the table lies on the first so many servers of the job only: those that it had
    // when processes joined an elastic job.
    uint32_t among = 0;
    uint32_t servers_of(uint32_t all) const { return among > 0 ? among : all; }
    bool operator==(const Placement &) const = default;
};

inline constexpr uint64_t most_blocks = 16384; // per dense table, and per placement callback
inline constexpr uint32_t most_virtual_nodes = 1024;

inline bool on_one_server(const Placement &placement) {
    return placement.policy == DTRAIN_PLACE_ROUND_ROBIN || placement.policy == DTRAIN_PLACE_GREEDY;
}
inline bool by_user(const Placement &placement) { return placement.policy == DTRAIN_PLACE_USER; }

// The blocks of elements or keys that the user's placement callback assigns to servers.
struct Blocks {
    uint64_t count = 0, size = 0;
    uint64_t items = 0; // elements or keys in all blocks; 0: 2^64
    uint64_t first(uint64_t block) const { return block * size; }
    uint64_t items_of(uint64_t block) const {
        return block + 1 < count || items == 0 ? size : items - first(block);
    }
};
Blocks blocks_of(const TableParams &params);
// Blocks of keys: the smallest power of two as the size that gives at most `most` blocks (> 1, a
// power of two). key_count 0: 2^64 keys.
Blocks key_blocks(uint64_t key_count, uint64_t most);

// Takes the caller's numbers of the placement and fills in defaults. All other parameters must be
// set before. Home, weights and owners are set elsewhere, where the servers are known.
void resolve_placement(const dtrain_table_params_t &given, TableParams &params);
// What is wrong with the placement, or nullptr. fits_servers() checks home, weights and owners.
const char *bad_placement(const TableParams &params);
// Whether home, weights and owners fit a job with this number of servers.
bool fits_servers(const TableParams &params, uint32_t servers);

} // namespace dtrain::ps
