// Implements dtrain_server_*.
// SPDX-License-Identifier: Apache-2.0
#include "api/server.h"
#include "api/guard.h"
#include "api/handles.h"
#include "cluster/environment/environment.h"

#include <cstdlib>
#include <limits>

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::api::guard_new;

namespace {

Status identify(const char *rendezvous, const dtrain_server_params_t &given,
                dtrain::cluster::Identity &out) {
    dtrain::cluster::IdentityRequest wanted;
    wanted.rendezvous = rendezvous != nullptr ? rendezvous : "";
    wanted.role = dtrain::cluster::Role::server;
    wanted.size = given.size;
    wanted.index = given.index;
    wanted.servers = given.servers;
    return find_identity(
        wanted, [](const char *name) { return std::getenv(name); }, out);
}

} // namespace

dtrain_status_t dtrain_server_create(dtrain_context_t *context, const char *rendezvous,
                                     const dtrain_server_params_t *params,
                                     dtrain_server_t **server_p) {
    if (Status s = check_handle(context, "context"); s != DTRAIN_OK) return s;
    if (server_p == nullptr) return fail(DTRAIN_ERR_INVALID, "server_create: server_p is NULL");
    return guard_new([&]() -> Status {
        dtrain_server_params_t given;
        if (Status s = dtrain::api::take(given, params); s != DTRAIN_OK) return s;
        dtrain::cluster::SessionParams session_params;
        if (Status s = identify(rendezvous, given, session_params.identity); s != DTRAIN_OK)
            return s;
        session_params.oob = given.oob;
        session_params.oob_arg = given.oob_arg;
        session_params.deadline_ns =
            dtrain::cluster::join_deadline(context->options, given.timeout_ns);
        auto fresh = std::make_unique<dtrain_server>(context);
        std::shared_ptr<dtrain::cluster::Session> session;
        if (Status s = dtrain::api::join(context, session_params, session); s != DTRAIN_OK)
            return s;
        if (Status s = dtrain::ps::Node::open(std::move(session), context->functions, fresh->node);
            s != DTRAIN_OK)
            return s;
        *server_p = fresh.release();
        return DTRAIN_OK;
    });
}

dtrain_status_t dtrain_server_wait(dtrain_server_t *server, int64_t timeout_ns) {
    if (Status s = check_handle(server, "server"); s != DTRAIN_OK) return s;
    return guard([&]() -> Status {
        dtrain::engine::Request &deserted = *server->node->deserted();
        dtrain::engine::Agent &agent = server->node->agent();
        int64_t deadline_ns = 0;
        if (timeout_ns < 0 ||
            __builtin_add_overflow(agent.clock().now_ns(), timeout_ns, &deadline_ns))
            deadline_ns = std::numeric_limits<int64_t>::max();
        agent.wait(deserted, deadline_ns);
        if (!deserted.done()) return DTRAIN_IN_PROGRESS;
        return server->node->session().job().status();
    });
}

dtrain_status_t dtrain_server_destroy(dtrain_server_t *server) {
    if (server == nullptr || !server->birth.here()) return DTRAIN_OK;
    return guard([&] {
        delete server;
        return DTRAIN_OK;
    });
}
