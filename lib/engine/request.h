// The completion record of one operation; dtrain_request_t is one of these.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace dtrain::engine {

class CompletionQueue;
class Operation;

struct Outcome {
    Status status = DTRAIN_OK;
    int32_t peer = -1;    // sender of a receive, guilty rank of an ERR_PEER
    uint64_t bytes = 0;   // moved into the caller's buffer
    uint64_t version = 0; // table operations
};

class Request;

// What a persistent request does each time that it is started.
class Restart {
  public:
    virtual ~Restart() = default;
    virtual Status start(Request *request) = 0; // posts; when it fails nothing was posted
};

// Shared by the operation, which completes it once, and its owner, who waits. A blocking call keeps
// it on its stack; an asynchronous one on the heap with two references (operation and handle).
class Request {
  public:
    Request() { text_[0] = '\0'; } // the rest costs more than a small operation
    Request(const Request &) = delete;
    Request &operator=(const Request &) = delete;

    bool done() const { return state_.load(std::memory_order_acquire) == finished; }
    const Outcome &outcome() const { return outcome_; } // only once done()
    dtrain_event_t event() const;                       // the same for the C API
    const char *error() const { return text_; }         // only once done(); "" on success

    // Called once by the operation, after set_error() when it failed.
    void complete(const Outcome &outcome);
    void set_error(const char *text); // copied

    // Sleeps until done or timeout_ns is over; for those who do not move data themselves.
    void sleep(int64_t timeout_ns);

    // For heap requests.
    static Request *create(uint64_t user_tag, CompletionQueue *queue, bool with_handle);
    // Finished as it were, until it is started; its reference is the handle's.
    static Request *create_persistent(uint64_t user_tag, CompletionQueue *queue,
                                      std::unique_ptr<Restart> restart);
    void release();              // gives up one reference
    void await_last_reference(); // once done(): the thread that completed it is about to let go
    bool on_heap() const { return references_.load(std::memory_order_relaxed) != 0; }

    // For the next operation of a persistent one; false: it has not finished.
    bool rearm();
    void disarm(Status status, const char *text); // that could not be begun
    // Memory for the operation of one on the heap, kept for the next one; of one thread at a time.
    void *operation_memory(size_t bytes);

    uint64_t user_tag = 0;
    CompletionQueue *queue = nullptr; // where complete() reports, too
    bool handle_given = false;        // the event carries the handle
    void *context = nullptr;          // the C layer's, valid until done
    // What complete() counts down: the users of registered memory.
    std::atomic<uint32_t> *holds[4] = {};
    std::unique_ptr<Restart> restart; // persistent requests
    // The operation, if it can end early: valid, under the agent's lock, until done.
    Operation *cancellable = nullptr;

  private:
    enum State : uint32_t { running, sleeping, finished };
    static constexpr size_t most_kept = 1024; // bytes of memory of one that waits for its next use
    void reset();                             // as if it were new
    std::atomic<uint32_t> state_{running};
    std::atomic<uint32_t> references_{0}; // 0: not on the heap
    Outcome outcome_;
    char text_[error_text_size];
    std::unique_ptr<std::byte[]> memory_;
    size_t memory_bytes_ = 0;
};

} // namespace dtrain::engine
