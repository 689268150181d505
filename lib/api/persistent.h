// Operations that are prepared once and started many times.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "api/operation.h"
#include "api/staging.h"

#include <utility>

namespace dtrain::api {

inline bool wants_persistent(const dtrain_op_params_t *params) { // may be NULL
    return params != nullptr && params->struct_size >= 8 &&
           (params->flags & DTRAIN_OP_PERSISTENT) != 0;
}

// An operation on a communicator. The communicator cannot be destroyed while it exists.
class PersistentOperation : public engine::Restart {
  public:
    PersistentOperation(dtrain_comm *comm, const Operation &operation);
    ~PersistentOperation() override;
    Status start(engine::Request *request) final;

  protected:
    virtual Status post(const collectives::CallOptions &options) = 0;

  private:
    dtrain_comm *const comm_;
    const Operation operation_;
    collectives::Scaling factors_;
    const collectives::Scaling *scaling_ = nullptr;
};

// Reads `params` without the flag DTRAIN_OP_PERSISTENT; fails when request_p is NULL.
Status read_persistent(dtrain_comm *comm, const dtrain_op_params_t *params,
                       dtrain_request_t **request_p, Allowed allowed, Operation &out);
Status hand_out(dtrain_comm *comm, const Operation &operation,
                std::unique_ptr<PersistentOperation> made, dtrain_request_t **request_p);

// Makes a request that keeps `post` and calls post(options), as in run_operation(), at every start.
template <class Post>
Status make_persistent(dtrain_comm *comm, const dtrain_op_params_t *params,
                       dtrain_request_t **request_p, Post post, Allowed allowed = {}) {
    struct Made final : PersistentOperation {
        Made(dtrain_comm *of, const Operation &operation, Post &&kept)
            : PersistentOperation(of, operation), post_(std::move(kept)) {}
        Status post(const collectives::CallOptions &options) override { return post_(options); }
        Post post_;
    };
    return guard([&]() -> Status {
        Operation operation;
        if (Status s = read_persistent(comm, params, request_p, allowed, operation); s != DTRAIN_OK)
            return s;
        return hand_out(comm, operation, std::make_unique<Made>(comm, operation, std::move(post)),
                        request_p);
    });
}

// As run_call(), if the call is persistent, or some buffer may lie on an accelerator. graph: owner
// of call.graph, or nullptr.
Status run_unusual_call(dtrain_comm *comm, const collectives::Call &call,
                        std::shared_ptr<const collectives::Graph> graph,
                        const dtrain_op_params_t *params, dtrain_request_t **request_p);

// Runs or posts a collective, or makes it persistent, as the parameters say. graph(): the owner of
// call.graph.
template <class Graph>
Status run_call(dtrain_comm *comm, const collectives::Call &call, const Graph &graph,
                const dtrain_op_params_t *params, dtrain_request_t **request_p) {
    if (wants_persistent(params) || comm->context->domains.any()) [[unlikely]]
        return run_unusual_call(comm, call, graph(), params, request_p);
    return run_operation(comm->context, params, request_p, [&](collectives::CallOptions options) {
        options.registry = &comm->context->registry;
        return comm->communicator->post(call, options);
    });
}

} // namespace dtrain::api
