// SPDX-License-Identifier: Apache-2.0
#include "api/persistent.h"

namespace dtrain::api {
namespace {

class PersistentCall final : public engine::Restart {
  public:
    PersistentCall(dtrain_comm *comm, const Operation &operation)
        : comm_(comm), operation_(operation) {
        scaling_ = read_scaling(operation_.params, factors_);
        comm_->persistent++;
    }
    ~PersistentCall() override { comm_->persistent--; }

    Status prepare(const collectives::Call &call) {
        return comm_->communicator->prepare_persistent(call, prepared_);
    }

    Status start(engine::Request *request) override {
        if (request->queue != nullptr && !request->queue->reserve())
            return fail(DTRAIN_ERR_BUSY, "the completion queue is full; take events from it, or "
                                         "make it deeper");
        Holds holds(operation_, *request);
        Status s =
            comm_->communicator->post(prepared_, {request, operation_.params.timeout_ns, false,
                                                  &comm_->context->registry, scaling_});
        if (s == DTRAIN_OK) return s;
        holds.undo();
        if (request->queue != nullptr) request->queue->unreserve();
        return s;
    }

  private:
    dtrain_comm *const comm_;
    const Operation operation_;
    collectives::Scaling factors_;
    const collectives::Scaling *scaling_ = nullptr;
    collectives::Prepared prepared_;
};

} // namespace

Status make_persistent(dtrain_comm *comm, const collectives::Call &call,
                       const dtrain_op_params_t *params, dtrain_request_t **request_p) {
    return guard([&]() -> Status {
        if (request_p == nullptr)
            return fail(DTRAIN_ERR_INVALID,
                        "a persistent operation is started by its request: request_p is NULL");
        dtrain_op_params_t once;
        if (Status s = take(once, params); s != DTRAIN_OK) return s;
        once.flags &= ~DTRAIN_OP_PERSISTENT;
        Operation operation;
        if (Status s = Operation::read(comm->context, &once, request_p, operation); s != DTRAIN_OK)
            return s;
        auto made = std::make_unique<PersistentCall>(comm, operation);
        if (Status s = made->prepare(call); s != DTRAIN_OK) return s;
        engine::CompletionQueue *queue = once.cq != nullptr ? once.cq->queue.get() : nullptr;
        engine::Request *request =
            engine::Request::create_persistent(once.user_tag, queue, std::move(made));
        if (request == nullptr) return fail(DTRAIN_ERR_NO_MEMORY, "out of memory");
        request->context = comm->context;
        *request_p = reinterpret_cast<dtrain_request_t *>(request);
        return DTRAIN_OK;
    });
}

} // namespace dtrain::api

dtrain_status_t dtrain_request_start(dtrain_request_t *const *requests, uint32_t count) {
    using dtrain::fail;
    using dtrain::engine::Request;
    if (requests == nullptr && count > 0) return fail(DTRAIN_ERR_INVALID, "requests is NULL");
    return dtrain::api::guard([&]() -> dtrain::Status {
        for (uint32_t i = 0; i < count; i++) {
            auto *request = reinterpret_cast<Request *>(requests[i]);
            if (request == nullptr)
                return fail(DTRAIN_ERR_INVALID, "request %u of %u is NULL", i, count);
            if (request->restart == nullptr)
                return fail(DTRAIN_ERR_INVALID,
                            "request %u of %u is not persistent: its operation was begun when it "
                            "was made",
                            i, count);
            if (!request->rearm())
                return fail(DTRAIN_ERR_BUSY, "request %u of %u still runs; wait for it", i, count);
            dtrain::Status s = request->restart->start(request);
            if (s == DTRAIN_OK) continue;
            request->disarm(s, dtrain::error_text());
            return s;
        }
        return DTRAIN_OK;
    });
}
