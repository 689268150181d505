// Implements dtrain_comm_*, and how a context joins a job.
// SPDX-License-Identifier: Apache-2.0
#include "api/changes.h"
#include "api/guard.h"
#include "api/handles.h"
#include "cluster/environment/environment.h"
#include "cluster/join/rendezvous.h"
#include "collectives/communicator/agreement.h"

#include <algorithm>
#include <cstdlib>

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::api::guard_new;
using dtrain::collectives::Communicator;

namespace dtrain::api {

namespace {

// Tells the transports the address at which other hosts reach this one.
Status find_own_address(dtrain_context *context, const std::string &rendezvous,
                        int64_t deadline_ns) {
    std::string own;
    Status s = cluster::own_address(rendezvous, deadline_ns, own);
    if (s != DTRAIN_OK || own.empty()) return s;
    context->agent->locked([&] {
        context->host->set_fact("local.address", std::move(own));
        for (auto &device : context->agent->devices())
            if (s == DTRAIN_OK) s = device->renew_address();
    });
    return s;
}

} // namespace

Status join(dtrain_context *context, cluster::SessionParams params,
            std::shared_ptr<cluster::Session> &out) {
    {
        std::lock_guard lock(context->session_mutex); // the address may differ from job to job
        if (Status s = find_own_address(context, params.identity.rendezvous, params.deadline_ns);
            s != DTRAIN_OK)
            return s;
        params.transports = cluster::transport_addresses(*context->agent);
    }
    return cluster::Session::join(*context->agent, *context->backgrounds, context->options, params,
                                  out);
}

} // namespace dtrain::api

namespace {

// Makes a handle for the communicator that `make` returns; *out is NULL if this rank gets none.
template <class F> Status make_comm(dtrain_context *context, dtrain_comm_t **out, F &&make) {
    return guard_new([&]() -> Status {
        context->domains.look();
        auto fresh = std::make_unique<dtrain_comm>(context);
        if (Status s = make(fresh->communicator); s != DTRAIN_OK) return s;
        *out = fresh->communicator != nullptr ? fresh.release() : nullptr;
        return DTRAIN_OK;
    });
}

Status make_world(dtrain_context *context, const char *rendezvous,
                  const dtrain_comm_params_t *params, std::unique_ptr<Communicator> &comm) {
    dtrain_comm_params_t given;
    if (Status s = dtrain::api::take(given, params); s != DTRAIN_OK) return s;
    dtrain::cluster::SessionParams session_params;
    dtrain::cluster::IdentityRequest wanted;
    wanted.rendezvous = rendezvous != nullptr ? rendezvous : "";
    wanted.newcomer = given.size == DTRAIN_NEWCOMER;
    wanted.size = wanted.newcomer ? 0 : given.size;
    wanted.index = given.rank;
    wanted.servers = given.servers;
    wanted.elastic = context->options.number("elastic") != 0;
    if (Status s = find_identity(
            wanted, [](const char *name) { return std::getenv(name); }, session_params.identity);
        s != DTRAIN_OK)
        return s;
    session_params.oob = given.oob;
    session_params.oob_arg = given.oob_arg;
    session_params.deadline_ns = dtrain::cluster::join_deadline(context->options, given.timeout_ns);
    std::shared_ptr<dtrain::cluster::Session> session;
    if (Status s = dtrain::api::join(context, session_params, session); s != DTRAIN_OK) return s;
    auto self = int32_t(session->self());
    if (Status s = context->timeline->joined(self, session->job().members()[size_t(self)].host);
        s != DTRAIN_OK)
        return s;
    const int64_t left_ns = session->timeout_until(session_params.deadline_ns);
    return Communicator::make_world(std::move(session), left_ns, comm);
}

Status check_pair(const dtrain_comm_t *comm, dtrain_comm_t **new_p) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    return new_p == nullptr ? fail(DTRAIN_ERR_INVALID, "new_p is NULL") : DTRAIN_OK;
}

} // namespace

dtrain_status_t dtrain_comm_create(dtrain_context_t *context, const char *rendezvous,
                                   const dtrain_comm_params_t *params, dtrain_comm_t **comm_p) {
    if (Status s = check_handle(context, "context"); s != DTRAIN_OK) return s;
    if (comm_p == nullptr) return fail(DTRAIN_ERR_INVALID, "comm_create: comm_p is NULL");
    return guard_new([&]() -> Status {
        context->domains.look();
        auto fresh = std::make_unique<dtrain_comm>(context);
        if (Status s = make_world(context, rendezvous, params, fresh->communicator); s != DTRAIN_OK)
            return s;
        if (const auto *entry = fresh->communicator->session().entry(); entry != nullptr)
            fresh->changes = dtrain::api::describe(*entry); // a newcomer's
        *comm_p = fresh.release();
        return DTRAIN_OK;
    });
}

dtrain_status_t dtrain_comm_destroy(dtrain_comm_t *comm) {
    if (comm == nullptr || !comm->birth.here()) return DTRAIN_OK;
    if (uint32_t left = comm->persistent; left > 0)
        return fail(
            DTRAIN_ERR_BUSY,
            "comm_destroy: %u persistent requests of the communicator exist; free them first",
            left);
    if (uint32_t left = comm->graphs; left > 0)
        return fail(DTRAIN_ERR_BUSY,
                    "comm_destroy: %u graphs of the communicator exist; destroy them first", left);
    return guard([&] {
        delete comm;
        return DTRAIN_OK;
    });
}

dtrain_status_t dtrain_comm_split(dtrain_comm_t *comm, int32_t color, int32_t key,
                                  dtrain_comm_t **new_p) {
    if (Status s = check_pair(comm, new_p); s != DTRAIN_OK) return s;
    return make_comm(comm->context, new_p, [&](std::unique_ptr<Communicator> &made) {
        return comm->communicator->split(color, key, made);
    });
}

dtrain_status_t dtrain_comm_duplicate(dtrain_comm_t *comm, dtrain_comm_t **new_p) {
    if (Status s = check_pair(comm, new_p); s != DTRAIN_OK) return s;
    return make_comm(comm->context, new_p, [&](std::unique_ptr<Communicator> &made) {
        return comm->communicator->duplicate(made);
    });
}

dtrain_status_t dtrain_comm_subset(dtrain_comm_t *comm, const int32_t *ranks, int32_t count,
                                   dtrain_comm_t **new_p) {
    if (Status s = check_pair(comm, new_p); s != DTRAIN_OK) return s;
    return make_comm(comm->context, new_p, [&](std::unique_ptr<Communicator> &made) {
        if (count < 0 || (ranks == nullptr && count > 0))
            return refuse(
                *comm->communicator, dtrain::cluster::CallKind::subset,
                fail(DTRAIN_ERR_INVALID, "subset: ranks is NULL or count (%d) is negative", count));
        return comm->communicator->subset({ranks, size_t(count)}, made);
    });
}

dtrain_status_t dtrain_comm_shrink(dtrain_comm_t *comm, dtrain_comm_t **new_p) {
    if (Status s = check_pair(comm, new_p); s != DTRAIN_OK) return s;
    return make_comm(comm->context, new_p, [&](std::unique_ptr<Communicator> &made) {
        return comm->communicator->shrink(made);
    });
}

dtrain_status_t dtrain_comm_create_group(dtrain_comm_t *comm, const int32_t *ranks, int32_t count,
                                         int32_t tag, int64_t timeout_ns, dtrain_comm_t **new_p) {
    if (Status s = check_pair(comm, new_p); s != DTRAIN_OK) return s;
    if (count < 0 || (ranks == nullptr && count > 0))
        return fail(DTRAIN_ERR_INVALID, "create_group: ranks is NULL or count (%d) is negative",
                    count);
    return make_comm(comm->context, new_p, [&](std::unique_ptr<Communicator> &made) {
        return comm->communicator->create_group({ranks, size_t(count)}, tag, timeout_ns, made);
    });
}

dtrain_status_t dtrain_comm_abort(dtrain_comm_t *comm, const char *reason) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    return guard([&] {
        std::lock_guard lock(comm->gradients_mutex);
        for (auto &entry : comm->gradients)
            if (auto queue = entry.lock()) queue->abort(reason);
        return comm->communicator->abort(reason);
    });
}

dtrain_status_t dtrain_comm_tune(dtrain_comm_t *comm, const char *path) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    if (path == nullptr || *path == 0)
        return fail(DTRAIN_ERR_INVALID, "tune: path is NULL or empty");
    return guard([&] { return comm->communicator->tune(path); });
}

int32_t dtrain_comm_rank(const dtrain_comm_t *comm) {
    return comm == nullptr ? -1 : comm->communicator->rank();
}

int32_t dtrain_comm_size(const dtrain_comm_t *comm) {
    return comm == nullptr ? -1 : comm->communicator->size();
}

dtrain_status_t dtrain_comm_status(dtrain_comm_t *comm) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    return guard([&] { return comm->communicator->status(); });
}

int32_t dtrain_comm_failed(dtrain_comm_t *comm, int32_t *ranks, int32_t max) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    if (max < 0 || (ranks == nullptr && max > 0))
        return fail(DTRAIN_ERR_INVALID, "comm_failed: ranks is NULL or max is negative");
    int32_t count = 0;
    Status s = guard([&] {
        std::vector<int32_t> failed = comm->communicator->failed_ranks();
        count = int32_t(failed.size());
        if (max > 0) std::copy_n(failed.begin(), std::min(count, max), ranks);
        return DTRAIN_OK;
    });
    return s == DTRAIN_OK ? count : s;
}
