// Implements dtrain_comm_reform() and what tells of it.
// SPDX-License-Identifier: Apache-2.0
#include "elastic/reform.h"
#include "api/changes.h"
#include "api/guard.h"
#include "api/handles.h"

#include <algorithm>
#include <cstring>

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::api::guard_new;

namespace {

// Sizes that the call does not name are those of the options.
Status read_sizes(const dtrain_reform_params_t &given, const dtrain::Options &options,
                  dtrain::elastic::Wish &wish) {
    constexpr auto most = int32_t(dtrain::wire::max_members);
    const bool ranges = given.min_size >= 0 && given.min_size <= most && given.max_size >= 0 &&
                        given.max_size <= most && (given.leaves == 0 || given.leaves == 1);
    if (!ranges)
        return fail(DTRAIN_ERR_INVALID,
                    "reform: min_size %d, max_size %d, leaves %d: sizes must be from 0 to %d, and "
                    "leaves 0 or 1",
                    given.min_size, given.max_size, given.leaves, most);
    wish.smallest = given.min_size > 0 ? given.min_size : int32_t(options.number("elastic.min"));
    wish.largest = given.max_size > 0 ? given.max_size : int32_t(options.number("elastic.max"));
    if (wish.largest == 0 || wish.smallest <= wish.largest) return DTRAIN_OK;
    return fail(DTRAIN_ERR_INVALID, "reform: at least %d workers (%s), but at most %d (%s)",
                wish.smallest, given.min_size > 0 ? "min_size" : "option elastic.min", wish.largest,
                given.max_size > 0 ? "max_size" : "option elastic.max");
}

} // namespace

dtrain_status_t dtrain_comm_reform(dtrain_comm_t *comm, const dtrain_reform_params_t *params,
                                   dtrain_comm_t **new_p) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    if (new_p == nullptr) return fail(DTRAIN_ERR_INVALID, "reform: new_p is NULL");
    return guard_new([&]() -> Status {
        dtrain_reform_params_t given;
        if (Status s = dtrain::api::take(given, params); s != DTRAIN_OK) return s;
        dtrain::elastic::Wish wish;
        if (Status s = read_sizes(given, comm->context->options, wish); s != DTRAIN_OK) return s;
        wish.leaves = given.leaves != 0;
        wish.timeout_ns = given.timeout_ns;
        auto fresh = std::make_unique<dtrain_comm>(comm->context);
        dtrain::elastic::Generation made;
        std::shared_ptr<dtrain::ps::Node> node;
        {
            std::lock_guard lock(comm->context->session_mutex);
            node = comm->node;
        }
        if (Status s = dtrain::elastic::reform(*comm->communicator, {node.get(), comm->legacy},
                                               *comm->context->backgrounds, wish, made);
            s != DTRAIN_OK)
            return s;
        if (made.world == nullptr) {
            *new_p = nullptr;
            return DTRAIN_OK;
        }
        fresh->changes = dtrain::api::describe(made.changes);
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
