// Implements dtrain_request_* and dtrain_cq_*.
// SPDX-License-Identifier: Apache-2.0
#include "api/guard.h"
#include "api/handles.h"

#include <cstring>
#include <limits>

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::api::guard_new;
using dtrain::engine::Request;

namespace {

constexpr uint32_t default_depth = 1024, max_depth = 1 << 20;

Request *unwrap(dtrain_request_t *request) { return reinterpret_cast<Request *>(request); }

dtrain::engine::Agent &agent_of(Request *request) {
    return *static_cast<dtrain_context *>(request->context)->agent;
}

// Checks for fork(). Only for operations in flight: finished ones and their texts stay readable in
// a child.
Status check_here(Request *request) {
    return dtrain::api::check_handle(static_cast<dtrain_context *>(request->context), "request");
}

Status null_request() { return fail(DTRAIN_ERR_INVALID, "request is NULL"); }

int64_t deadline(int64_t timeout_ns) {
    int64_t deadline_ns = 0;
    if (timeout_ns < 0 ||
        __builtin_add_overflow(dtrain::monotonic_clock().now_ns(), timeout_ns, &deadline_ns))
        return std::numeric_limits<int64_t>::max();
    return deadline_ns;
}

Status result_of(Request *request) {
    Status status = request->outcome().status;
    if (status != DTRAIN_OK) dtrain::set_error_text(request->error());
    return status;
}

} // namespace

dtrain_status_t dtrain_request_test(dtrain_request_t *request) {
    Request *r = unwrap(request);
    if (r == nullptr) return null_request();
    if (r->done()) return result_of(r);
    if (Status s = check_here(r); s != DTRAIN_OK) return s;
    guard([&] { return agent_of(r).work(); });
    return r->done() ? result_of(r) : DTRAIN_IN_PROGRESS;
}

dtrain_status_t dtrain_request_wait(dtrain_request_t *request, int64_t timeout_ns) {
    Request *r = unwrap(request);
    if (r == nullptr) return null_request();
    if (r->done()) return result_of(r);
    if (Status s = check_here(r); s != DTRAIN_OK) return s;
    guard([&] {
        agent_of(r).wait(*r, deadline(timeout_ns));
        return DTRAIN_OK;
    });
    return r->done() ? result_of(r) : DTRAIN_IN_PROGRESS;
}

dtrain_status_t dtrain_request_cancel(dtrain_request_t *request) {
    Request *r = unwrap(request);
    if (r == nullptr) return null_request();
    if (r->done()) return DTRAIN_OK;
    if (Status s = check_here(r); s != DTRAIN_OK) return s;
    if (r->cancellable == nullptr)
        return fail(DTRAIN_ERR_STATE,
                    "cannot cancel: other ranks may have begun this operation; it can only be "
                    "aborted with its communicator");
    return guard([&] {
        dtrain::engine::Agent &agent = agent_of(r);
        agent.locked([&] {
            if (!r->done())
                r->cancellable->fail(agent, {.status = DTRAIN_ERR_CANCELED}, "canceled");
        });
        return DTRAIN_OK;
    });
}

dtrain_status_t dtrain_request_result(dtrain_request_t *request, dtrain_event_t *event_p) {
    Request *r = unwrap(request);
    if (r == nullptr) return null_request();
    if (event_p == nullptr) return fail(DTRAIN_ERR_INVALID, "request_result: event_p is NULL");
    if (!r->done()) return fail(DTRAIN_ERR_STATE, "the operation is not finished; wait for it");
    *event_p = r->event();
    return DTRAIN_OK;
}

size_t dtrain_request_error(dtrain_request_t *request, char *buf, size_t len) {
    Request *r = unwrap(request);
    const char *text = r != nullptr && r->done() ? r->error() : "";
    size_t whole = std::strlen(text);
    if (buf != nullptr && len > 0) {
        size_t kept = whole < len ? whole : len - 1;
        std::memcpy(buf, text, kept);
        buf[kept] = 0;
    }
    return whole;
}

void dtrain_request_free(dtrain_request_t *request) {
    if (request == nullptr) return;
    Request &freed = *unwrap(request);
    // await_last_reference(): the caller may destroy the communicator next, which refuses while it
    // has persistent requests.
    if (freed.restart != nullptr && freed.done() && check_here(&freed) == DTRAIN_OK)
        freed.await_last_reference();
    freed.release();
}

// ---- completion queues ----

dtrain_status_t dtrain_cq_create(dtrain_context_t *context, uint32_t depth, dtrain_cq_t **cq_p) {
    if (Status s = check_handle(context, "context"); s != DTRAIN_OK) return s;
    if (cq_p == nullptr) return fail(DTRAIN_ERR_INVALID, "cq_create: cq_p is NULL");
    if (depth > max_depth)
        return fail(DTRAIN_ERR_LIMIT, "cq_create: depth %u is more than the maximum of %u events",
                    depth, max_depth);
    return guard_new([&]() -> Status {
        auto fresh = std::make_unique<dtrain_cq>(context);
        if (Status s = dtrain::engine::CompletionQueue::create(depth == 0 ? default_depth : depth,
                                                               fresh->queue);
            s != DTRAIN_OK)
            return s;
        *cq_p = fresh.release();
        return DTRAIN_OK;
    });
}

dtrain_status_t dtrain_cq_destroy(dtrain_cq_t *cq) {
    if (cq == nullptr || !cq->birth.here()) return DTRAIN_OK;
    if (cq->queue->used())
        return fail(DTRAIN_ERR_BUSY,
                    "cq_destroy: the completion queue is in use: operations will report to it, "
                    "or it holds events that were not polled");
    delete cq;
    return DTRAIN_OK;
}

int32_t dtrain_cq_poll(dtrain_cq_t *cq, dtrain_event_t *events, uint32_t max, int64_t timeout_ns) {
    if (Status s = check_handle(cq, "cq"); s != DTRAIN_OK) return s;
    if (events == nullptr || max == 0)
        return fail(DTRAIN_ERR_INVALID, "cq_poll: events is NULL or max is 0");
    uint32_t n = 0;
    Status s = guard([&] {
        n = cq->queue->take(events, max);
        if (n == 0) {
            if (timeout_ns != 0)
                cq->context->agent->wait(*cq->queue, deadline(timeout_ns));
            else
                cq->context->agent->work();
            n = cq->queue->take(events, max);
        }
        return DTRAIN_OK;
    });
    return s == DTRAIN_OK ? int32_t(n) : s;
}

int32_t dtrain_cq_fd(dtrain_cq_t *cq) {
    if (Status s = check_handle(cq, "cq"); s != DTRAIN_OK) return s;
    return cq->queue->fd();
}
