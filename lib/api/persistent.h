// Operations that are prepared once and started many times.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "api/operation.h"

#include <utility>

namespace dtrain::api {

inline bool wants_persistent(const dtrain_op_params_t *params) { // may be NULL
    return params != nullptr && params->struct_size >= 8 &&
           (params->flags & DTRAIN_OP_PERSISTENT) != 0;
}

// An operation on a communicator, which it keeps from being destroyed.
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

// What `params` say without the flag, and that there is a place for the request.
Status read_persistent(dtrain_comm *comm, const dtrain_op_params_t *params,
                       dtrain_request_t **request_p, Operation &out);
Status hand_out(dtrain_comm *comm, const Operation &operation,
                std::unique_ptr<PersistentOperation> made, dtrain_request_t **request_p);

// post(options) as in run_operation(): kept, and called at every start.
template <class Post>
Status make_persistent(dtrain_comm *comm, const dtrain_op_params_t *params,
                       dtrain_request_t **request_p, Post post) {
    struct Made final : PersistentOperation {
        Made(dtrain_comm *of, const Operation &operation, Post &&kept)
            : PersistentOperation(of, operation), post_(std::move(kept)) {}
        Status post(const collectives::CallOptions &options) override { return post_(options); }
        Post post_;
    };
    return guard([&]() -> Status {
        Operation operation;
        if (Status s = read_persistent(comm, params, request_p, operation); s != DTRAIN_OK)
            return s;
        return hand_out(comm, operation, std::make_unique<Made>(comm, operation, std::move(post)),
                        request_p);
    });
}

// A collective whose arguments are checked now, and never again. graph: kept; or nullptr.
Status make_persistent_call(dtrain_comm *comm, const collectives::Call &call,
                            std::shared_ptr<const collectives::Graph> graph,
                            const dtrain_op_params_t *params, dtrain_request_t **request_p);

// Runs, posts or keeps a collective, as the parameters say. graph: what the call's graph points to.
inline Status run_call(dtrain_comm *comm, const collectives::Call &call,
                       const std::shared_ptr<const collectives::Graph> &graph,
                       const dtrain_op_params_t *params, dtrain_request_t **request_p) {
    if (wants_persistent(params)) return make_persistent_call(comm, call, graph, params, request_p);
    return run_operation(comm->context, params, request_p, [&](collectives::CallOptions options) {
        options.registry = &comm->context->registry;
        return comm->communicator->post(call, options);
    });
}

} // namespace dtrain::api
