// A table's placement: the weights of the servers, or what the caller's place() answers.
// SPDX-License-Identifier: Apache-2.0
#include "tables/placement.h"

#include "base/callback.h"

#include <algorithm>

namespace dtrain::tables {

using ps::Placement;
using ps::TableParams;

namespace {

using ull = unsigned long long;

Status take_weights(const dtrain_table_params_t &given, const char *name, const ps::Node &node,
                    Placement &placement) {
    const uint32_t servers = node.servers().size();
    if (given.weight_count == 0) {
        if (!by_user(placement)) placement.weights = node.usual_weights();
        return DTRAIN_OK;
    }
    if (by_user(placement))
        return fail(DTRAIN_ERR_INVALID,
                    "table_create \"%s\": weights cannot be used with placement USER", name);
    if (given.weight_count != servers)
        return fail(DTRAIN_ERR_INVALID,
                    "table_create \"%s\": %u weights, but the job has %u servers", name,
                    given.weight_count, servers);
    placement.weights.assign(given.weights, given.weights + servers);
    if (std::any_of(given.weights, given.weights + servers, [](uint32_t w) { return w > 0; }))
        return DTRAIN_OK;
    return fail(DTRAIN_ERR_INVALID, "table_create \"%s\": all weights are 0", name);
}

Status ask_user(const dtrain_table_params_t &given, const char *name, uint32_t servers,
                TableParams &params) {
    const ps::Blocks blocks = blocks_of(params);
    for (uint64_t block = 0; block < blocks.count; ++block) {
        const uint64_t first = blocks.first(block), count = blocks.items_of(block);
        uint32_t server = servers;
        const auto ask = [&] { server = given.place(given.place_arg, first, count, servers); };
        if (Thrown thrown; !returns(ask, thrown))
            return fail(DTRAIN_ERR_INVALID, "table_create \"%s\": place() threw %s", name,
                        thrown.text);
        if (server >= servers)
            return fail(DTRAIN_ERR_INVALID,
                        "table_create \"%s\": place() puts %llu to %llu + %llu on server %u of %u",
                        name, ull{first}, ull{first}, ull{count}, server, servers);
        params.placement.owners.push_back(uint16_t(server));
    }
    return DTRAIN_OK;
}

} // namespace

Status complete_placement(const dtrain_table_params_t &given, const char *name,
                          const ps::Node &node, TableParams &params) {
    const bool asks = by_user(params.placement);
    if ((given.place != nullptr) != asks)
        return fail(DTRAIN_ERR_INVALID,
                    "table_create \"%s\": place is %sNULL, but placement is %sUSER", name,
                    asks ? "" : "not ", asks ? "" : "not ");
    if ((given.weights == nullptr) != (given.weight_count == 0))
        return fail(DTRAIN_ERR_INVALID,
                    "table_create \"%s\": weight_count is %u, but weights is %s", name,
                    given.weight_count, given.weights == nullptr ? "NULL" : "not NULL");
    if (Status s = take_weights(given, name, node, params.placement); s != DTRAIN_OK) return s;
    return asks ? ask_user(given, name, node.servers().size(), params) : DTRAIN_OK;
}

} // namespace dtrain::tables
