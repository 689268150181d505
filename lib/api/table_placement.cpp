// Decides where a table is placed, and answers queries about it.
// SPDX-License-Identifier: Apache-2.0
#include "api/table.h"
#include "base/callback.h"
#include "ps/placement/placement_balance.h"

#include <algorithm>
#include <cstring>

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::ps::Placement;
using dtrain::ps::TableParams;

namespace {

using ull = unsigned long long;

Status take_weights(const dtrain_table_params_t &given, const char *name,
                    const dtrain::ps::Node &node, Placement &placement) {
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
    const dtrain::ps::Blocks blocks = blocks_of(params);
    for (uint64_t block = 0; block < blocks.count; ++block) {
        const uint64_t first = blocks.first(block), count = blocks.items_of(block);
        uint32_t server = servers;
        const auto ask = [&] { server = given.place(given.place_arg, first, count, servers); };
        if (dtrain::Thrown thrown; !dtrain::returns(ask, thrown))
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

Status dtrain::api::complete_placement(const dtrain_table_params_t &given, const char *name,
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

Status dtrain::api::agree_on_home(dtrain_comm *comm, ps::Node &node, int64_t deadline_ns,
                                  TableParams &params) {
    // Workers destroy tables at different times, so their views of how full the servers are differ:
    // rank 0 alone chooses. It broadcasts for every table, so that ranks whose parameters differ
    // still make the same calls, and the servers report the difference.
    uint32_t home = 0;
    const bool asked = on_one_server(params.placement);
    if (asked && comm->communicator->rank() == 0) home = node.choose_home(params);
    const Status s = comm->communicator->run_until({.kind = dtrain::collectives::Kind::broadcast,
                                                    .recv = &home,
                                                    .count = 1,
                                                    .dtype = DTRAIN_U32,
                                                    .root = 0},
                                                   deadline_ns);
    if (s == DTRAIN_OK && asked) params.placement.home = home;
    return s;
}

dtrain_status_t dtrain_table_locate(const dtrain_table_t *table, const uint64_t *items,
                                    uint64_t count, uint32_t *servers) {
    if (Status s = check_handle(table, "table"); s != DTRAIN_OK) return s;
    if (count > 0 && (items == nullptr || servers == nullptr))
        return fail(DTRAIN_ERR_INVALID, "locate: %s is NULL",
                    items == nullptr ? "items" : "servers");
    const dtrain::ps::ClientTable &its = *table->table;
    if (is_sparse(its.params)) {
        for (uint64_t i = 0; i < count; ++i) servers[i] = its.key_partition.server_of(items[i]);
        return DTRAIN_OK;
    }
    for (uint64_t i = 0; i < count; ++i) {
        if (items[i] >= its.params.length)
            return fail(
                DTRAIN_ERR_INVALID,
                "locate in table \"%s\": element %llu is out of range, it has %llu elements",
                its.name.c_str(), ull{items[i]}, ull{its.params.length});
        servers[i] = its.partition.server_of(items[i]);
    }
    return DTRAIN_OK;
}

dtrain_status_t dtrain_table_describe_server(const dtrain_table_t *table, uint32_t server,
                                             dtrain_table_server_t *out) {
    if (Status s = check_handle(table, "table"); s != DTRAIN_OK) return s;
    if (out == nullptr || out->struct_size < 8)
        return fail(DTRAIN_ERR_INVALID,
                    "describe_server: out is NULL or not initialized (DTRAIN_INIT)");
    const dtrain::ps::ServerList &servers = table->node->servers();
    if (server >= servers.size())
        return fail(DTRAIN_ERR_NOT_FOUND,
                    "describe_server of table \"%s\": there is no server %u among the %u",
                    table->table->name.c_str(), server, servers.size());
    return guard([&] {
        const dtrain::ps::ClientTable &its = *table->table;
        const dtrain::ps::Part part = its.partition.part(server);
        const uint32_t member = servers.member(server);
        dtrain_table_server_t all = {};
        all.struct_size = out->struct_size;
        all.rank = member < table->node->session().workers() ? int32_t(member) : -1;
        all.elements = part.count();
        all.ranges = part.ranges();
        all.share = its.share(server);
        std::memcpy(out, &all, std::min<size_t>(sizeof all, out->struct_size));
        return DTRAIN_OK;
    });
}

dtrain_status_t dtrain_server_weights(uint32_t workers, uint32_t dedicated, uint32_t serving,
                                      uint32_t *weights) {
    constexpr uint32_t most = 1 << 20;
    if (workers == 0 || workers > most || dedicated > most || serving > workers ||
        (dedicated == 0 && serving == 0) || weights == nullptr)
        return fail(DTRAIN_ERR_INVALID,
                    "server_weights: %u workers of which %u serve, %u dedicated servers, weights "
                    "is %s",
                    workers, serving, dedicated, weights == nullptr ? "NULL" : "not NULL");
    return guard([&] {
        std::vector<uint32_t> all = dtrain::ps::server_weights(workers, dedicated, serving);
        all.resize(dedicated + serving, 1); // no weights: all servers are equal
        std::copy(all.begin(), all.end(), weights);
        return DTRAIN_OK;
    });
}
