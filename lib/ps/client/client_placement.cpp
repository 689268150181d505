// How a client chooses the server of a table that is placed on one server.
// SPDX-License-Identifier: Apache-2.0
#include "ps/client/client_table.h"
#include "ps/placement/placement_balance.h"
#include "ps/storage/shard.h"

namespace dtrain::ps {
namespace {

// The bytes of a server's part; for a sparse table the limit of its rows.
uint64_t bytes_of(const TableParams &params, uint64_t elements, uint32_t workers) {
    return is_sparse(params) ? params.max_bytes : Shard::bytes_needed(params, elements, workers);
}

} // namespace

double ClientTable::share(uint32_t server) const {
    if (is_sparse(params)) return key_partition.share(server);
    return double(partition.count(server)) / double(params.length);
}

uint32_t Client::choose_home(const TableParams &params, uint32_t workers) {
    const uint64_t bytes = bytes_of(params, params.length, workers);
    const Placement &placement = params.placement;
    if (placement.split_bytes > 0 && bytes > placement.split_bytes) return 0;
    std::vector<uint64_t> load(config_.servers);
    for (const auto &table : tables_) {
        if (table->destroyed) continue;
        for (uint32_t s = 0; s < config_.servers; ++s) {
            if (table->share(s) == 0) continue;
            const uint64_t part = bytes_of(table->params, table->partition.count(s), workers);
            if (__builtin_add_overflow(load[s], part, &load[s])) load[s] = UINT64_MAX;
        }
    }
    return choose_server(placement, load, bytes, turn_) + 1;
}

} // namespace dtrain::ps
