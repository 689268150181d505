// The completion record of one operation. dtrain_request_t is a pointer to one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace dtrain::engine {

class CompletionQueue;
class Gate;
class Landing;
class Operation;

struct Outcome {
    Status status = DTRAIN_OK;
    int32_t peer = -1;    // sender of a receive, or the guilty rank of an ERR_PEER
    uint64_t bytes = 0;   // bytes moved into the caller's buffer
    uint64_t version = 0; // for table operations
};

class Request;

// What a persistent request does each time it is started.
class Restart {
  public:
    virtual ~Restart() = default;
    // Posts the operation; on failure nothing was posted.
    virtual Status start(Request *request) = 0;
};

// Shared by the operation, which completes it once, and its owner, which waits for it. A blocking
// call keeps it on its stack; an asynchronous call on the heap, with two references (operation and
// handle).
class Request {
  public:
    Request() { text_[0] = '\0'; } // initializing all of it would cost more than a small operation
    Request(const Request &) = delete;
    Request &operator=(const Request &) = delete;

    bool done() const { return state_.load(std::memory_order_acquire) == finished; }
    const Outcome &outcome() const { return outcome_; } // only once done()
    dtrain_event_t event() const;                       // the outcome in the form of the C API
    const char *error() const { return text_; }         // only once done(); "" on success

    // Called once by the operation, after set_error() if it failed.
    void complete(const Outcome &outcome);
    void set_error(const char *text); // copied

    // Sleeps until the request is done or timeout_ns has passed; for threads that do not move data
    // themselves.
    void sleep(int64_t timeout_ns);

    // For heap requests.
    static Request *create(uint64_t user_tag, CompletionQueue *queue, bool with_handle);
    // Counts as finished until it is started; its one reference is the handle's.
    static Request *create_persistent(uint64_t user_tag, CompletionQueue *queue,
                                      std::unique_ptr<Restart> restart);
    void release();              // drops one reference
    void await_last_reference(); // when done(): the completing thread still drops its reference
    bool on_heap() const { return references_.load(std::memory_order_relaxed) != 0; }

    // Prepares a persistent request for its next operation; false: the last one has not finished.
    bool rearm();
    void disarm(Status status, const char *text); // the operation could not be started
    // Memory for the operation of a heap request, kept for the next operation; one thread at a
    // time.
    void *operation_memory(size_t bytes);

    uint64_t user_tag = 0;
    CompletionQueue *queue = nullptr; // complete() reports here, too
    bool handle_given = false;        // the event carries the handle
    void *context = nullptr;          // owned by the C layer; valid until done
    // Counters that complete() decrements: the users of registered memory.
    std::atomic<uint32_t> *holds[4] = {};
    std::unique_ptr<Restart> restart; // for persistent requests
    // The operation, if it can end early. Valid until done; used under the agent's lock.
    Operation *cancellable = nullptr;
    // Copies the results to an accelerator before the request counts as done; nullptr: nothing
    // does. Never for a blocking call's.
    Landing *landing = nullptr;
    Gate *gate = nullptr; // of the operation; nullptr: it may begin at once

  private:
    enum State : uint32_t { running, sleeping, finished };
    // Bytes; larger operation memory is freed between uses.
    static constexpr size_t most_kept = 1024;
    void reset();            // to the state of a new request
    void let_go_of_memory(); // that the operation has held
    void finish();
    // For one that a handle or a completion queue knows. Not inline: a blocking call would pay for
    // its event.
    [[gnu::noinline]] void complete_shared(bool on_heap);
    std::atomic<uint32_t> state_{running};
    std::atomic<uint32_t> references_{0}; // 0: not on the heap
    Outcome outcome_;
    char text_[error_text_size];
    std::unique_ptr<std::byte[]> memory_;
    size_t memory_bytes_ = 0;
};

} // namespace dtrain::engine
