// SPDX-License-Identifier: Apache-2.0
#include "engine/request.h"

#include "base/clock.h"
#include "engine/completion_queue.h"
#include "engine/futex.h"

#include <cstdio>
#include <new>

namespace dtrain::engine {

Request *Request::create(uint64_t user_tag, CompletionQueue *queue, bool with_handle) {
    auto *request = new (std::nothrow) Request;
    if (request == nullptr) return nullptr;
    request->references_ = with_handle ? 2 : 1;
    request->user_tag = user_tag;
    request->queue = queue;
    request->handle_given = with_handle;
    return request;
}

void Request::release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void Request::set_error(const char *text) { std::snprintf(text_, sizeof text_, "%s", text); }

void Request::complete(const Outcome &outcome) {
    outcome_ = outcome;
    // Read before the owner can know: from then on a request on a stack may be gone.
    bool on_heap = references_.load(std::memory_order_relaxed) != 0;
    CompletionQueue *report_to = queue;
    dtrain_event_t event = {};
    event.user_tag = user_tag;
    event.request = handle_given ? reinterpret_cast<dtrain_request_t *>(this) : nullptr;
    event.bytes = outcome.bytes;
    event.status = outcome.status;
    event.peer = outcome.peer;
    event.version = outcome.version;
    // Waking an address at which nobody waits any more is harmless.
    if (state_.exchange(finished, std::memory_order_acq_rel) == sleeping) futex_wake_all(&state_);
    if (report_to != nullptr) report_to->push(event);
    if (on_heap) release();
}

void Request::sleep(int64_t timeout_ns) {
    uint32_t expected = running;
    state_.compare_exchange_strong(expected, sleeping, std::memory_order_acq_rel);
    if (!done()) futex_wait(&state_, sleeping, timeout_ns);
}

} // namespace dtrain::engine
