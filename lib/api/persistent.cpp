// Makes persistent requests, and starts them (dtrain_request_start()).
// SPDX-License-Identifier: Apache-2.0
#include "api/persistent.h"

#include "collectives/communicator/scaled_call.h"

namespace dtrain::api {

PersistentOperation::PersistentOperation(dtrain_comm *comm, const Operation &operation)
    : comm_(comm), operation_(operation) {
    scaling_ = read_scaling(operation_.params, factors_);
    comm_->persistent++;
}

PersistentOperation::~PersistentOperation() { comm_->persistent--; }

Status PersistentOperation::start(engine::Request *request) {
    if (request->queue != nullptr && !request->queue->reserve())
        return fail(DTRAIN_ERR_BUSY, "the completion queue is full; poll it, or create it "
                                     "with a larger depth");
    Holds holds(operation_, *request);
    Status s = post({.request = request,
                     .timeout_ns = operation_.params.timeout_ns,
                     .awaited = awaited(operation_.params),
                     .priority = operation_.params.priority,
                     .scaling = scaling_});
    if (s == DTRAIN_OK) return s;
    holds.undo();
    if (request->queue != nullptr) request->queue->unreserve();
    return s;
}

Status read_persistent(dtrain_comm *comm, const dtrain_op_params_t *params,
                       dtrain_request_t **request_p, Allowed allowed, Operation &out) {
    if (request_p == nullptr)
        return fail(DTRAIN_ERR_INVALID,
                    "a persistent operation is started through its request, but request_p is NULL");
    dtrain_op_params_t once;
    if (Status s = take(once, params); s != DTRAIN_OK) return s;
    once.flags &= ~DTRAIN_OP_PERSISTENT;
    return Operation::read(comm->context, &once, request_p, allowed, out);
}

Status hand_out(dtrain_comm *comm, const Operation &operation,
                std::unique_ptr<PersistentOperation> made, dtrain_request_t **request_p) {
    const dtrain_op_params_t &params = operation.params;
    engine::CompletionQueue *queue = params.cq != nullptr ? params.cq->queue.get() : nullptr;
    engine::Request *request =
        engine::Request::create_persistent(params.user_tag, queue, std::move(made));
    if (request == nullptr) return fail(DTRAIN_ERR_NO_MEMORY, "out of memory");
    request->context = comm->context;
    *request_p = reinterpret_cast<dtrain_request_t *>(request);
    return DTRAIN_OK;
}

static const collectives::Call &call_of(const collectives::Call &call) { return call; }
static const collectives::Call &call_of(const collectives::Prepared &prepared) {
    return prepared.call;
}

// Chooses how a scaled reduction is scaled: by the landing, or else by the host at once, which a
// stream and direct buffers do not allow.
static Status choose_scaling(const dtrain_comm *comm, const collectives::Call &call,
                             const collectives::CallOptions &options, How &how) {
    const collectives::Scaling &scaling = *options.scaling;
    // The leader scales an input into the rank's receive buffer.
    if (call.kind != collectives::Kind::allreduce && scaling.before != 1) how.direct = {};
    const bool by_landing = how.stream.given ? !how.reads_host || scaling.before == 1
                                             : how.all_staged && how.direct.domain != nullptr;
    if (!by_landing) {
        how.direct = {};
        return DTRAIN_OK;
    }
    how.scale = {.dtype = call.dtype,
                 .before = scaling.before,
                 .after = scaling.after,
                 .on_host = how.host_result};
    return check_scaling(*comm->communicator, call, scaling);
}

// Posts a call, or what was prepared of it, on its buffers themselves, or on the copies that stand
// for them, if there are any.
template <class What>
static Status post_placed(dtrain_comm *comm, const Staged &staged, How how, What &what,
                          collectives::CallOptions options) {
    options.registry = &comm->context->registry;
    collectives::Communicator &communicator = *comm->communicator;
    if (options.scaling != nullptr)
        if (Status s = choose_scaling(comm, call_of(what), options, how); s != DTRAIN_OK) return s;
    const bool is_direct = how.direct.domain != nullptr;
    const auto post = [&](collectives::CallOptions on_either) {
        if (how.scale.dtype != 0) {
            const collectives::Scaling scaling = *std::exchange(on_either.scaling, nullptr);
            if (Status s = agree_on_scaling(communicator, call_of(what), scaling); s != DTRAIN_OK)
                return s;
        }
        return is_direct ? communicator.post_undecided(what, on_either)
                         : communicator.post(what, on_either);
    };
    return is_direct ? post_on_either(comm->context, staged, options, how, post)
                     : post_staged(comm->context, staged, options, how, post);
}

// Makes a persistent collective, whose arguments are checked once, here. graph: kept by the
// request; may be nullptr. staged: the copies that stand for the call's buffers, if there are any.
static Status make_persistent_call(dtrain_comm *comm, const collectives::Call &call,
                                   std::shared_ptr<const collectives::Graph> graph, Staged staged,
                                   const How &how, const dtrain_op_params_t *params,
                                   dtrain_request_t **request_p) {
    return guard([&]() -> Status {
        auto prepared = std::make_unique<collectives::Prepared>();
        if (Status s = comm->communicator->prepare_persistent(call, *prepared); s != DTRAIN_OK)
            return s;
        const Allowed allowed{.stream = staged != nullptr || how.all_staged};
        return make_persistent(
            comm, params, request_p,
            [comm, prepared = std::move(prepared), graph = std::move(graph),
             staged = std::move(staged), how](const collectives::CallOptions &options) {
                return post_placed(comm, staged, how, *prepared, options);
            },
            allowed);
    });
}

Status run_unusual_call(dtrain_comm *comm, const collectives::Call &given,
                        std::shared_ptr<const collectives::Graph> graph,
                        const dtrain_op_params_t *params, dtrain_request_t **request_p) {
    return catching([&]() -> Status {
        collectives::Call call = given;
        Staging staging(comm->context);
        if (Status s = staging.call(*comm->communicator, call); s != DTRAIN_OK) return s;
        const How how{.when = Begin::gated,
                      .stream = stream_of(params),
                      .direct = staging.direct(),
                      .all_staged = staging.all_staged(),
                      .reads_host = staging.reads_host(),
                      .host_result = staging.host_result()};
        if (wants_persistent(params))
            return make_persistent_call(comm, call, graph, staging.staged(), how, params,
                                        request_p);
        const auto go = [&](const collectives::CallOptions &options) {
            return post_placed(comm, staging.staged(), how, call, options);
        };
        return run_operation(comm->context, params, request_p, go,
                             {.stream = staging.staged() != nullptr || how.all_staged});
    });
}

} // namespace dtrain::api

dtrain_status_t dtrain_request_start(dtrain_request_t *const *requests, uint32_t count) {
    using dtrain::fail;
    using dtrain::engine::Request;
    if (requests == nullptr && count > 0)
        return fail(DTRAIN_ERR_INVALID, "request_start: requests is NULL");
    return dtrain::api::guard([&]() -> dtrain::Status {
        for (uint32_t i = 0; i < count; i++) {
            auto *request = reinterpret_cast<Request *>(requests[i]);
            if (request == nullptr)
                return fail(DTRAIN_ERR_INVALID, "request_start: request %u of %u is NULL", i,
                            count);
            if (request->restart == nullptr)
                return fail(DTRAIN_ERR_INVALID,
                            "request %u of %u is not persistent: its operation started when it "
                            "was created",
                            i, count);
            if (dtrain::Status s = dtrain::api::check_handle(
                    static_cast<dtrain_context *>(request->context), "request");
                s != DTRAIN_OK)
                return s;
            if (!request->rearm())
                return fail(DTRAIN_ERR_BUSY, "request %u of %u is still running; wait for it first",
                            i, count);
            dtrain::Status s = request->restart->start(request);
            if (s == DTRAIN_OK) continue;
            request->disarm(s, dtrain::error_text());
            return s;
        }
        return DTRAIN_OK;
    });
}
