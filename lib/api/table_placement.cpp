// Implements what asks where a table lies: dtrain_table_locate() and others.
// SPDX-License-Identifier: Apache-2.0
#include "api/table.h"
#include "ps/placement/placement_balance.h"

#include <algorithm>
#include <cstring>

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using ull = unsigned long long;

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
