// Describes what this build and machine can do, and how this process would join a job.
// SPDX-License-Identifier: Apache-2.0
#include "api/guard.h"
#include "api/handles.h"
#include "api/json.h"
#include "cluster/environment/environment.h"
#include "cluster/host/cores.h"
#include "device/kernels.h"
#include "transport/plugin.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

using dtrain::Status;

std::string dtrain::api::quoted(std::string_view text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out + "\"";
}

namespace {

using dtrain::api::quoted;

std::string number(const char *key, uint64_t value) {
    return quoted(key) + ": " + std::to_string(value);
}

std::string capabilities(uint64_t caps) {
    static constexpr std::pair<uint64_t, const char *> names[] = {
        {DTRAIN_TP_CAP_PUT, "put"},
        {DTRAIN_TP_CAP_GET, "get"},
        {DTRAIN_TP_CAP_WINDOW, "window"},
        {DTRAIN_TP_CAP_EVENT_FD, "event_fd"},
        {DTRAIN_TP_CAP_PEER_LOST, "peer_lost"},
        {DTRAIN_TP_CAP_CUDA, "cuda"},
        {DTRAIN_TP_CAP_DMABUF, "dmabuf"},
        {DTRAIN_TP_CAP_GUARDED, "guarded"},
        {DTRAIN_TP_CAP_WORDS, "words"}};
    std::string out = "[";
    for (auto [bit, name] : names)
        if ((caps & bit) != 0) out += (out.size() > 1 ? ", " : "") + quoted(name);
    return out + "]";
}

std::string transports(const dtrain_context &context) {
    std::string out;
    for (auto &device : context.agent->devices()) {
        const dtrain_tp_attr_t &attr = device->attr();
        out += std::string(out.empty() ? "" : ",") + "\n    {\"name\": " + quoted(device->name()) +
               ", \"device\": " + quoted(device->label()) +
               ", \"capabilities\": " + capabilities(attr.caps) + ", " +
               number("latency_ns", attr.latency_ns) + ", " +
               number("bandwidth_bytes_per_second", attr.bandwidth_bps) + ", " +
               number("eager_limit", attr.eager_limit) + "}";
    }
    return out;
}

std::string cards(const dtrain_context &context) {
    std::string out;
    for (const dtrain::transport::Card &card : context.host->cards())
        out += std::string(out.empty() ? "" : ",") +
               "\n    {\"transport\": " + quoted(card.transport) +
               ", \"card\": " + quoted(card.name) + ", \"address\": " + quoted(card.address) +
               ", \"numa_node\": " + std::to_string(card.numa_node) + ", " +
               number("bandwidth_bytes_per_second", card.bandwidth_bps) +
               ", \"state\": " + quoted(card.state) +
               ", \"used\": " + (card.chosen ? "true" : "false") +
               ", \"why\": " + quoted(card.why) + "}";
    return out;
}

std::string devices_of(const dtrain::accel::PluginReport &plugin) {
    std::string out;
    for (const dtrain::accel::DeviceReport &device : plugin.devices)
        out += std::string(out.empty() ? "" : ", ") +
               "{\"device\": " + std::to_string(device.attr.ordinal) +
               ", \"name\": " + quoted(device.attr.name) +
               ", \"address\": " + quoted(device.attr.address) +
               ", \"driver\": " + quoted(device.attr.driver) + ", " +
               number("memory_bytes", device.attr.memory_bytes) +
               ", \"open\": " + (device.is_open ? "true" : "false") + ", " +
               number("to_host_bytes", device.to_host_bytes) + ", " +
               number("to_device_bytes", device.to_device_bytes) + ", " +
               number("reduced_bytes", device.reduced_bytes) + ", " +
               number("moved_bytes", device.moved_bytes) + "}";
    return out;
}

std::string accelerators(dtrain_context &context) {
    context.domains.look(); // the program may have begun to use one
    std::string out;
    for (const dtrain::accel::PluginReport &plugin : context.domains.report())
        out += std::string(out.empty() ? "" : ",") + "\n    {\"plugin\": " + quoted(plugin.name) +
               ", \"used\": " + (plugin.why.empty() ? "true" : "false") +
               ", \"why\": " + quoted(plugin.why) + ", \"devices\": [" + devices_of(plugin) + "]}";
    return out;
}

std::string describe(dtrain_context *context) {
    std::string out = "{\n  \"version\": " + quoted(DTRAIN_VERSION) + ",\n  ";
    out += number("api", DTRAIN_API_VERSION) + ",\n  ";
    out += number("transport_abi", DTRAIN_TP_ABI) + ",\n  ";
    out += "\"kernels\": " + quoted(dtrain::device::kernel_target()) + ",\n  ";
    out += number("usable_cores", dtrain::cluster::usable_cores()) + ",\n  \"limits\": {";
    out += number("ranks", dtrain::engine::max_ranks) + ", ";
    out += number("communicators", dtrain::engine::max_groups) + "}";
    if (context != nullptr) out += ",\n  \"transports\": [" + transports(*context) + "\n  ]";
    if (context != nullptr && !context->host->cards().empty())
        out += ",\n  \"cards\": [" + cards(*context) + "\n  ]";
    if (context != nullptr) out += ",\n  \"accelerators\": [" + accelerators(*context) + "]";
    return out + "\n}\n";
}

namespace cluster = dtrain::cluster;

const char *env(const char *name) { return std::getenv(name); }

std::string described_sources() {
    std::string out;
    for (const cluster::SourceReport &one : cluster::report_sources(env, cluster::Role::worker))
        out += std::string(out.empty() ? "" : ",") +
               "\n    {\"started_by\": " + quoted(one.source->name) +
               ", \"reads\": " + quoted(one.source->reads) +
               ", \"meets\": " + quoted(one.source->meets) +
               ", \"here\": " + (one.applies ? "true" : "false") +
               ", \"says\": " + quoted(one.text) + "}";
    return out;
}

// The role of a process that joins, or of an evaluator, which does not.
std::string described_role(Status joins, cluster::Role role) {
    cluster::Task task{};
    if (joins == DTRAIN_OK)
        return role == cluster::Role::worker ? R"(, "role": "worker")" : R"(, "role": "server")";
    const bool evaluates = find_task(env, task) == DTRAIN_OK && task == cluster::Task::evaluator;
    return evaluates ? R"(, "role": "evaluator")" : "";
}

std::string describe_join(const cluster::IdentityRequest &wanted) {
    cluster::Identity found;
    std::string evidence;
    const Status s = find_identity(wanted, env, found, cluster::full_name_of, &evidence);
    const std::string why = s == DTRAIN_OK ? evidence : dtrain::error_text();
    std::string out = "{\n  \"joins\": ";
    out += s == DTRAIN_OK ? "true" : "false";
    out += described_role(s, found.role);
    if (s == DTRAIN_OK)
        out += ", " + number("index", uint64_t(found.index)) + ", " +
               number("workers", uint64_t(found.workers)) + ", " +
               number("servers", uint64_t(found.servers)) +
               ", \"rendezvous\": " + quoted(found.rendezvous);
    return out + ", \"why\": " + quoted(why) + ",\n  \"sources\": [" + described_sources() +
           "\n  ]\n}\n";
}

// Copies the text as far as it fits; returns its whole length.
size_t give_text(const std::string &text, char *buf, size_t len) {
    if (buf != nullptr && len > 0) {
        const size_t kept = std::min(text.size(), len - 1);
        std::memcpy(buf, text.data(), kept);
        buf[kept] = 0;
    }
    return text.size();
}

} // namespace

size_t dtrain_context_describe(dtrain_context_t *context, char *buf, size_t len) {
    size_t whole = 0;
    dtrain::api::guard([&]() -> Status {
        if (context != nullptr)
            if (Status s = dtrain::api::check_handle(context, "context"); s != DTRAIN_OK) return s;
        whole = give_text(describe(context), buf, len);
        return DTRAIN_OK;
    });
    return whole;
}

size_t dtrain_join_describe(const char *rendezvous, const dtrain_comm_params_t *params, char *buf,
                            size_t len) {
    size_t whole = 0;
    dtrain::api::guard([&]() -> Status {
        dtrain_comm_params_t given;
        if (Status s = dtrain::api::take(given, params); s != DTRAIN_OK) return s;
        const cluster::IdentityRequest wanted = {rendezvous != nullptr ? rendezvous : "",
                                                 cluster::Role::worker, given.size, given.rank,
                                                 given.servers};
        whole = give_text(describe_join(wanted), buf, len);
        return DTRAIN_OK;
    });
    return whole;
}

dtrain_status_t dtrain_join_role(uint32_t *role_p) {
    if (role_p == nullptr) return dtrain::fail(DTRAIN_ERR_INVALID, "join_role: role_p is NULL");
    return dtrain::api::guard([&]() -> Status {
        cluster::Task task{};
        if (Status s = find_task(env, task); s != DTRAIN_OK) return s;
        *role_p = DTRAIN_ROLE_WORKER + uint32_t(task);
        return DTRAIN_OK;
    });
}
