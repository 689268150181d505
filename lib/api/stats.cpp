// Implements dtrain_stats_*.
// SPDX-License-Identifier: Apache-2.0
#include "api/server.h"
#include "api/table.h"

#include <algorithm>
#include <cstring>

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::ps::Counters;
using dtrain::ps::Histogram;

static_assert(Histogram::buckets == DTRAIN_STATS_BUCKETS);

dtrain_status_t dtrain_stats_table(dtrain_table_t *table, int32_t server,
                                   dtrain_table_stats_t *stats) {
    if (Status s = check_handle(table, "table"); s != DTRAIN_OK) return s;
    const size_t servers = table->table->channels.size();
    if (server < -1 || server >= int64_t(servers))
        return fail(DTRAIN_ERR_INVALID,
                    "stats of table \"%s\": there is no server %d among the %zu (use -1 for all)",
                    table->table->name.c_str(), server, servers);
    return guard([&] {
        const Counters counters = table->node->counters(*table->table, server);
        dtrain_table_stats_t all = {};
        all.requests = counters.requests;
        all.repeats = counters.repeats;
        all.refused = counters.refused;
        all.dropped = counters.dropped;
        all.stale = counters.stale;
        all.not_finite = counters.not_finite;
        all.elements = counters.elements;
        all.sent_bytes = counters.sent;
        all.received_bytes = counters.received;
        all.latency_sum = counters.latency.sum;
        all.staleness_sum = counters.staleness.sum;
        std::copy_n(counters.latency.count.begin(), DTRAIN_STATS_BUCKETS, all.latency);
        std::copy_n(counters.staleness.count.begin(), DTRAIN_STATS_BUCKETS, all.staleness);
        return dtrain::api::give(stats, all, "table");
    });
}

dtrain_status_t dtrain_stats_device(dtrain_context_t *context, uint32_t index,
                                    dtrain_device_stats_t *stats) {
    if (Status s = check_handle(context, "context"); s != DTRAIN_OK) return s;
    const auto &devices = context->agent->devices();
    if (index >= devices.size())
        return fail(DTRAIN_ERR_NOT_FOUND, "stats of device %u: there are only %zu devices", index,
                    devices.size());
    return guard([&]() -> Status {
        const dtrain::transport::Device &device = *devices[index];
        if (device.ops().counters == nullptr)
            return fail(DTRAIN_ERR_UNSUPPORTED, "transport %s does not count copied bytes",
                        std::string(device.name()).c_str());
        dtrain_tp_counters_t counters = {};
        counters.struct_size = sizeof counters;
        Status status = DTRAIN_OK;
        context->agent->locked([&] { status = device.ops().counters(device.dev(), &counters); });
        if (status != DTRAIN_OK) return status;
        dtrain_device_stats_t all = {};
        all.copied = counters.copied;
        all.in_place = counters.in_place;
        all.registrations = counters.registered;
        all.registered_bytes = counters.registered_bytes;
        all.cache_entries = counters.kept;
        all.cache_bytes = counters.kept_bytes;
        all.cache_hits = counters.hits;
        all.cache_misses = counters.registrations;
        all.cache_evictions = counters.evictions;
        return dtrain::api::give(stats, all, "device");
    });
}

size_t dtrain_stats_server(dtrain_server_t *server, char *buf, size_t len) {
    size_t length = 0;
    if (check_handle(server, "server") != DTRAIN_OK) return 0;
    guard([&] {
        const std::string text = server->current()->metrics();
        length = text.size();
        if (len == 0 || buf == nullptr) return DTRAIN_OK;
        const size_t kept = std::min(length, len - 1);
        std::memcpy(buf, text.data(), kept);
        buf[kept] = 0;
        return DTRAIN_OK;
    });
    return length;
}
