// Implements dtrain_comm_reform() and what tells of it.
// SPDX-License-Identifier: Apache-2.0
#include "elastic/reform.h"
#include "api/guard.h"
#include "api/handles.h"
#include "api/json.h"

#include <algorithm>
#include <cstring>

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::api::guard_new;

namespace {

std::string list(const std::vector<std::string> &items) {
    std::string out = "[";
    for (const std::string &item : items) out += (out.size() > 1 ? ", " : "") + item;
    return out + "]";
}

std::string texts(const std::vector<std::string> &all) {
    std::vector<std::string> items;
    items.reserve(all.size());
    for (const std::string &one : all) items.push_back(dtrain::api::quoted(one));
    return list(items);
}

std::string describe(const dtrain::cluster::NextJob &next) {
    std::vector<std::string> ranks;
    ranks.reserve(next.workers.size());
    for (int32_t old : next.workers) ranks.push_back(old < 0 ? "null" : std::to_string(old));
    return "{\"generation\": " + std::to_string(next.identity.generation) +
           ", \"size\": " + std::to_string(next.workers.size()) + ", \"ranks\": " + list(ranks) +
           ", \"came\": " + texts(next.came) + ", \"went\": " + texts(next.went) + "}";
}

} // namespace

dtrain_status_t dtrain_comm_reform(dtrain_comm_t *comm, const dtrain_reform_params_t *params,
                                   dtrain_comm_t **new_p) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    if (new_p == nullptr) return fail(DTRAIN_ERR_INVALID, "reform: new_p is NULL");
    return guard_new([&]() -> Status {
        dtrain_reform_params_t given;
        if (Status s = dtrain::api::take(given, params); s != DTRAIN_OK) return s;
        const bool fits = given.min_size >= 0 && given.max_size >= 0 &&
                          (given.max_size == 0 || given.min_size <= given.max_size) &&
                          given.min_size <= int32_t(dtrain::wire::max_members) &&
                          given.max_size <= int32_t(dtrain::wire::max_members);
        if (!fits || (given.leaves != 0 && given.leaves != 1))
            return fail(DTRAIN_ERR_INVALID,
                        "reform: min_size %d, max_size %d, leaves %d: sizes must be from 0 to %zu, "
                        "min_size at most max_size, and leaves 0 or 1",
                        given.min_size, given.max_size, given.leaves, dtrain::wire::max_members);
        dtrain::elastic::Wish wish;
        wish.smallest = std::max(1, given.min_size);
        wish.largest = given.max_size;
        wish.leaves = given.leaves != 0;
        wish.timeout_ns = given.timeout_ns;
        auto fresh = std::make_unique<dtrain_comm>(comm->context);
        dtrain::elastic::Generation made;
        std::shared_ptr<dtrain::ps::Node> node;
        {
            std::lock_guard lock(comm->context->session_mutex);
            node = comm->node;
        }
        if (Status s = dtrain::elastic::reform(*comm->communicator, node.get(),
                                               *comm->context->helper, wish, made);
            s != DTRAIN_OK)
            return s;
        if (made.world == nullptr) {
            *new_p = nullptr;
            return DTRAIN_OK;
        }
        fresh->changes = describe(made.changes);
        fresh->legacy = std::move(made.legacy);
        fresh->communicator = std::move(made.world);
        *new_p = fresh.release();
        return DTRAIN_OK;
    });
}

int32_t dtrain_comm_newcomers(dtrain_comm_t *comm) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    return int32_t(comm->communicator->session().job().newcomers());
}

size_t dtrain_comm_changes(const dtrain_comm_t *comm, char *buf, size_t len) {
    if (comm == nullptr) return 0;
    if (len > 0 && buf != nullptr) {
        const size_t n = std::min(len - 1, comm->changes.size());
        std::memcpy(buf, comm->changes.data(), n);
        buf[n] = 0;
    }
    return comm->changes.size();
}
