// Implements dtrain_server_*.
// SPDX-License-Identifier: Apache-2.0
#include "api/server.h"
#include "api/guard.h"
#include "api/handles.h"
#include "cluster/environment/environment.h"
#include "elastic/reform.h"

#include <cstdlib>
#include <limits>

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::api::guard_new;

namespace {

Status identify(const char *rendezvous, const dtrain_server_params_t &given, bool elastic,
                dtrain::cluster::Identity &out) {
    dtrain::cluster::IdentityRequest wanted;
    wanted.rendezvous = rendezvous != nullptr ? rendezvous : "";
    wanted.role = dtrain::cluster::Role::server;
    wanted.newcomer = given.size == DTRAIN_NEWCOMER;
    wanted.size = wanted.newcomer ? 0 : given.size;
    wanted.elastic = elastic;
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
        if (Status s = identify(rendezvous, given, context->options.number("elastic") != 0,
                                session_params.identity);
            s != DTRAIN_OK)
            return s;
        session_params.oob = given.oob;
        session_params.oob_arg = given.oob_arg;
        session_params.deadline_ns =
            dtrain::cluster::join_deadline(context->options, given.timeout_ns);
        auto fresh = std::make_unique<dtrain_server>(context);
        std::shared_ptr<dtrain::cluster::Session> session;
        if (Status s = dtrain::api::join(context, session_params, session); s != DTRAIN_OK)
            return s;
        if (Status s = dtrain::ps::Node::open(
                std::move(session), {context->functions, context->domains}, {}, fresh->node);
            s != DTRAIN_OK)
            return s;
        *server_p = fresh.release();
        return DTRAIN_OK;
    });
}

namespace {

using NodePtr = std::shared_ptr<dtrain::ps::Node>;

// Serves in the job's next generation, with what it holds.
Status follow(dtrain_server *server, const NodePtr &from, const dtrain::cluster::NextJob &next) {
    dtrain_context &context = *server->context;
    dtrain::elastic::Generation made;
    NodePtr fresh;
    if (Status s = dtrain::elastic::follow(*from, *context.backgrounds, next, made); s != DTRAIN_OK)
        return s;
    std::lock_guard lock(context.session_mutex);
    if (Status s = dtrain::ps::Node::open(made.session, {context.functions, context.domains},
                                          std::move(made.legacy), fresh);
        s != DTRAIN_OK)
        return s;
    std::lock_guard exchange(server->mutex);
    server->node = std::move(fresh);
    server->last = from;
    return DTRAIN_OK;
}

// Whether a node's workers have gone, or have agreed on the next generation.
bool is_done(const NodePtr &node) { return node != nullptr && node->deserted()->done(); }

// Waits for that, of either node; one of them may be nullptr.
Status wait(dtrain::engine::Agent &agent, const NodePtr &node, const NodePtr &last,
            int64_t deadline_ns) {
    if (node != nullptr && last != nullptr)
        agent.wait_until([&] { return is_done(node) || is_done(last); }, deadline_ns);
    else
        agent.wait(*(node != nullptr ? node : last)->deserted(), deadline_ns);
    return is_done(node) || is_done(last) ? DTRAIN_OK : DTRAIN_IN_PROGRESS;
}

void release_last(dtrain_server *server) {
    NodePtr last; // its end takes a while, so it comes after the unlocking
    std::lock_guard exchange(server->mutex);
    last.swap(server->last);
}

} // namespace

dtrain_status_t dtrain_server_wait(dtrain_server_t *server, int64_t timeout_ns) {
    if (Status s = check_handle(server, "server"); s != DTRAIN_OK) return s;
    return guard([&]() -> Status {
        dtrain::engine::Agent &agent = server->current()->agent();
        int64_t deadline_ns = 0;
        if (timeout_ns < 0 ||
            __builtin_add_overflow(agent.clock().now_ns(), timeout_ns, &deadline_ns))
            deadline_ns = std::numeric_limits<int64_t>::max();
        for (bool deserted = false;;) { // of the current one
            const NodePtr node = server->current(), last = server->previous();
            if (Status s = wait(agent, deserted ? nullptr : node, last, deadline_ns);
                s != DTRAIN_OK)
                return s;
            const NodePtr from = is_done(last) ? last : node;
            dtrain::cluster::NextJob next;
            if (from->has_moved(next)) {
                if (!next.stays) return DTRAIN_OK;
                const Status s = follow(server, from, next);
                if (s == DTRAIN_ERR_NO_MEMORY || s == DTRAIN_ERR_LIMIT) return s;
                if (s == DTRAIN_OK) deserted = false;
                from->stay(); // its workers may agree once more, if the next one does not form
            } else if (from == last) {
                release_last(server);
                if (deserted) return node->session().job().status();
            } else if (last == nullptr) {
                return node->session().job().status();
            } else {
                deserted = true;
            }
        }
    });
}

dtrain_status_t dtrain_server_destroy(dtrain_server_t *server) {
    if (server == nullptr || !server->birth.here()) return DTRAIN_OK;
    return guard([&] {
        delete server;
        return DTRAIN_OK;
    });
}
