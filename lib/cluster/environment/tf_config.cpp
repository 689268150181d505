// Parses and checks the JSON of TF_CONFIG.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/environment/tf_config.h"

#include "wire/limits.h"

#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace dtrain::cluster {
namespace {

using Json = nlohmann::json; // uses only functions that do not throw on values checked before

constexpr size_t max_text = 1 << 20;

[[gnu::format(printf, 1, 2)]] Status bad(const char *format, ...) {
    char what[200];
    va_list args;
    va_start(args, format);
    std::vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return fail(DTRAIN_ERR_CONFIG, "TF_CONFIG: %s", what);
}

// A number from a JSON number or a string of digits; -1 if it is neither, or too large.
int32_t index_of(const Json &json) {
    if (json.is_number_integer()) {
        auto n = json.get<int64_t>();
        return n >= 0 && n < int64_t(wire::max_members) ? int32_t(n) : -1;
    }
    if (!json.is_string()) return -1;
    const auto &text = json.get_ref<const std::string &>();
    int32_t n = -1;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    return error == std::errc{} && *end == 0 && n >= 0 && n < int32_t(wire::max_members) ? n : -1;
}

Status add(const char *job, int32_t index, const Json &address, TfConfig::Addresses &out) {
    if (index < 0) return bad("cluster.%s has an index that is not a number", job);
    if (!address.is_string() || address.get_ref<const std::string &>().empty())
        return bad("cluster.%s[%d] is not \"host:port\"", job, index);
    out[index] = address.get_ref<const std::string &>();
    return DTRAIN_OK;
}

// Reads ["host:port", ...], or {"1": "host:port"} (sparse).
Status read_job(const Json &cluster, const char *job, TfConfig::Addresses &out, bool &sparse) {
    auto at = cluster.find(job);
    if (at == cluster.end()) return DTRAIN_OK;
    sparse = at->is_object();
    if (!at->is_array() && !at->is_object()) return bad("cluster.%s is not a list", job);
    if (at->size() > wire::max_members) return bad("cluster.%s is too long", job);
    int32_t position = 0;
    for (auto one = at->begin(); one != at->end(); ++one) {
        int32_t index = sparse ? index_of(Json(one.key())) : position++;
        if (Status s = add(job, index, *one, out); s != DTRAIN_OK) return s;
    }
    return DTRAIN_OK;
}

Status read_cluster(const Json &cluster, TfConfig &out) {
    if (!cluster.is_object()) return bad("cluster is not an object");
    bool sparse = false;
    for (const char *job : {"chief", "master"})
        if (Status s = read_job(cluster, job, out.chief, sparse); s != DTRAIN_OK) return s;
    if (out.chief.size() > 1) return bad("there is more than one chief");
    if (Status s = read_job(cluster, "ps", out.ps, sparse); s != DTRAIN_OK) return s;
    if (sparse) return bad("cluster.ps must be a list");
    return read_job(cluster, "worker", out.workers, out.sparse);
}

Status read_task(const Json &task, TfConfig &out) {
    if (!task.is_object()) return bad("task is not an object");
    auto type = task.find("type"), index = task.find("index");
    if (type == task.end() || !type->is_string()) return bad("task.type is missing");
    const auto &name = type->get_ref<const std::string &>();
    out.index = index == task.end() ? 0 : index_of(*index);
    if (out.index < 0) return bad("task.index is not a number >= 0");
    using Task = TfConfig::Task;
    if (name == "evaluator") return out.task = Task::evaluator, DTRAIN_OK;
    const TfConfig::Addresses *job = nullptr;
    if (name == "chief" || name == "master") out.task = Task::chief, job = &out.chief;
    if (name == "worker") out.task = Task::worker, job = &out.workers;
    if (name == "ps") out.task = Task::ps, job = &out.ps;
    if (job == nullptr)
        return bad("task.type \"%.40s\" is not chief, master, worker, ps or evaluator",
                   name.c_str());
    if (!job->contains(out.index))
        return bad("task %.40s %d is not in the cluster", name.c_str(), out.index);
    return DTRAIN_OK;
}

} // namespace

Status parse_tf_config(std::string_view text, TfConfig &out) {
    if (text.size() > max_text) return bad("it is longer than 1 MiB");
    Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded() || !json.is_object()) return bad("it is not a JSON object");
    TfConfig fresh;
    auto cluster = json.find("cluster"), task = json.find("task");
    if (cluster != json.end())
        if (Status s = read_cluster(*cluster, fresh); s != DTRAIN_OK) return s;
    bool alone = fresh.chief.empty() && fresh.workers.empty() && fresh.ps.empty();
    if (task == json.end() && !alone) return bad("task is missing");
    if (task != json.end() && !alone)
        if (Status s = read_task(*task, fresh); s != DTRAIN_OK) return s;
    out = std::move(fresh);
    return DTRAIN_OK;
}

} // namespace dtrain::cluster
