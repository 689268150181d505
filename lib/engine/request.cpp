// Completes, reuses and frees requests.
// SPDX-License-Identifier: Apache-2.0
#include "engine/request.h"

#include "base/clock.h"
#include "engine/completion_queue.h"
#include "engine/futex.h"
#include "engine/landing.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <new>
#include <pthread.h>
#include <thread>

namespace dtrain::engine {
namespace {

// Requests that this thread has freed and will reuse: malloc would be a large part of the cost of a
// small operation. Under AddressSanitizer none are kept, so that it detects a use after free.
#ifdef __SANITIZE_ADDRESS__
constexpr size_t most_spare = 0;
#else
constexpr size_t most_spare = 256;
#endif
struct Spare {
    Request *requests[most_spare + 1];
    size_t count = 0;
    bool is_freed = false; // a destructor is set for the thread's end
};
thread_local constinit Spare spare = {};

// Uses a pthread key instead of a destructor: glibc aborts if memory is lacking to register a
// thread's destructor.
bool free_at_end(Spare &mine) {
    static pthread_key_t key;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static bool has_key = false;
    pthread_once(&once, [] {
        has_key = pthread_key_create(&key, [](void *its) {
                      auto &ended = *static_cast<Spare *>(its);
                      // Requests that other destructors free come here again.
                      ended.is_freed = false;
                      while (ended.count > 0) delete ended.requests[--ended.count];
                  }) == 0;
    });
    if (!mine.is_freed) mine.is_freed = has_key && pthread_setspecific(key, &mine) == 0;
    return mine.is_freed;
}

Request *take_spare() { return spare.count > 0 ? spare.requests[--spare.count] : nullptr; }

bool keep_spare(Request *request) {
    Spare &mine = spare;
    if (mine.count >= most_spare || !free_at_end(mine)) return false;
    mine.requests[mine.count++] = request;
    return true;
}

} // namespace

Request *Request::create(uint64_t user_tag, CompletionQueue *queue, bool with_handle) {
    Request *request = take_spare();
    if (request != nullptr)
        request->reset();
    else
        request = new (std::nothrow) Request;
    if (request == nullptr) return nullptr;
    request->references_ = with_handle ? 2 : 1;
    request->user_tag = user_tag;
    request->queue = queue;
    request->handle_given = with_handle;
    return request;
}

Request *Request::create_persistent(uint64_t user_tag, CompletionQueue *queue,
                                    std::unique_ptr<Restart> restart) {
    Request *request = create(user_tag, queue, true);
    if (request == nullptr) return nullptr;
    request->references_ = 1;
    request->state_ = finished;
    request->restart = std::move(restart);
    return request;
}

bool Request::rearm() {
    if (!done()) return false;
    references_.fetch_add(1, std::memory_order_relaxed);
    reset();
    return true;
}

void Request::reset() {
    outcome_ = {};
    text_[0] = '\0';
    std::fill(std::begin(holds), std::end(holds), nullptr);
    cancellable = nullptr;
    landing = nullptr;
    gate = nullptr;
    state_.store(running, std::memory_order_release);
}

void Request::disarm(Status status, const char *text) {
    outcome_.status = status;
    set_error(text);
    state_.store(finished, std::memory_order_release);
    release();
}

void *Request::operation_memory(size_t bytes) {
    if (memory_bytes_ < bytes) {
        memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
        memory_bytes_ = bytes;
    }
    return memory_.get();
}

void Request::release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const bool worth_keeping = restart == nullptr && memory_bytes_ <= most_kept;
    if (!worth_keeping || !keep_spare(this)) delete this;
}

void Request::await_last_reference() {
    while (references_.load(std::memory_order_acquire) > 1) std::this_thread::yield();
}

dtrain_event_t Request::event() const {
    dtrain_event_t event = {};
    event.user_tag = user_tag;
    event.request =
        handle_given ? reinterpret_cast<dtrain_request_t *>(const_cast<Request *>(this)) : nullptr;
    event.bytes = outcome_.bytes;
    event.status = outcome_.status;
    event.peer = outcome_.peer;
    event.version = outcome_.version;
    return event;
}

void Request::set_error(const char *text) { std::snprintf(text_, sizeof text_, "%s", text); }

inline void Request::let_go_of_memory() {
    for (std::atomic<uint32_t> *users : holds)
        if (users != nullptr) users->fetch_sub(1);
}

void Request::complete(const Outcome &outcome) {
    outcome_ = outcome;
    const bool on_heap = references_.load(std::memory_order_relaxed) != 0;
    if (on_heap || queue != nullptr) return complete_shared(on_heap);
    let_go_of_memory();
    finish();
}

// As soon as the request counts as finished, one on a stack may be gone.
void Request::finish() {
    // Waking an address on which no thread waits any more is harmless.
    if (state_.exchange(finished, std::memory_order_acq_rel) == sleeping) futex_wake_all(&state_);
}

void Request::complete_shared(bool on_heap) {
    if (landing != nullptr && landing->begin(outcome_)) [[unlikely]]
        return;
    let_go_of_memory();
    CompletionQueue *report_to = queue; // read before the owner can know
    dtrain_event_t event_of_it;
    if (report_to != nullptr) event_of_it = event();
    finish();
    if (report_to != nullptr) report_to->push(event_of_it);
    if (on_heap) release();
}

void Request::sleep(int64_t timeout_ns) {
    uint32_t expected = running;
    state_.compare_exchange_strong(expected, sleeping, std::memory_order_acq_rel);
    if (!done()) futex_wait(&state_, sleeping, timeout_ns);
}

} // namespace dtrain::engine
