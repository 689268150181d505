// A queue of an accelerator for the library's own work.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/call_thread.h"
#include "accel/pinned_memory.h"
#include "accel/waker.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace dtrain::accel {

struct Copy { // device addresses, also of pinned memory
    void *dst = nullptr;
    const void *src = nullptr;
    uint64_t bytes = 0;
};

// Puts copies into a queue, in pieces that it takes. begun, if it is given, is set once a piece is
// in flight.
Status submit_copies(const dtrain_dv_ops_t &ops, dtrain_dv_queue_t *queue,
                     std::span<const Copy> copies, uint64_t longest, bool *begun = nullptr);

// Batches of copies or of other work, done in order. The queue stores the number of the last batch
// that is done into a word, so that looking at it costs no call of the driver.
class OwnQueue { // thread-safe
  public:
    // Submits anything. begun: whether some of it is in flight, perhaps even on failure.
    using Work = std::function<Status(dtrain_dv_queue_t *queue, bool &begun)>;
    // A batch that is in flight, or that a CallThread submits later.
    struct Posted {
        struct Later {
            std::atomic<bool> submitted{false}; // or not: what follows is known then
            Status status = DTRAIN_OK;
            std::string text; // of the failure
            bool begun = false;
            int64_t posted_ns = 0;
        };
        uint32_t batch = 0;
        std::shared_ptr<Later> later;
        Status result() const; // of submitting it; OK while that is not known
    };

    // page: holds the words at this offset, 8 bytes; outlives the queue, as dev does. waker: is
    // told of each batch that is done; nullptr: no thread sleeps until then. calls: makes calls
    // while streams wait; nullptr: there is no post().
    Status open(const dtrain_dv_ops_t &ops, dtrain_dv_dev_t *dev, const PinnedBlock &page,
                uint64_t offset, uint64_t longest_copy, Waker *waker, CallThread *calls = nullptr);
    ~OwnQueue() { close(); }
    void close();

    // Submits a batch; never waits, but for the driver. Its number is set even on failure: some of
    // it may be in flight until it has passed. wakes: the waker is told of its end.
    Status submit(const Work &work, uint32_t &batch, bool &begun, bool wakes = true);
    // The same, but if streams wait another thread submits it, so the work owns what it uses.
    // begun: also that this is not known yet.
    Status post(Work work, Posted &posted, bool &begun, bool wakes = true);
    Status post(std::vector<Copy> copies, Posted &posted);
    // Whether this batch and all before it are done.
    bool passed(uint32_t batch) const {
        return int32_t(word_->load(std::memory_order_acquire) - batch) >= 0;
    }
    bool passed(const Posted &posted) const {
        return passed(posted.batch) &&
               (posted.later == nullptr || posted.later->submitted.load(std::memory_order_acquire));
    }
    // OK while the queue goes on; else what has happened to the accelerator, or that a stream of
    // the program's which waits holds the queue up: the accelerator's library may run unrelated
    // streams one after the other. Waits for no call that waits for streams.
    Status check();
    Status check(const Posted &posted); // also its result, and whether a call holds it up
    // From now on streams of the program's may wait for this process's operations.
    static void expect_waiting_streams() { streams_wait_.store(true, std::memory_order_relaxed); }
    // Sleeps until the batch has passed. TIMEOUT: at the deadline (monotonic_clock()).
    Status wait(uint32_t batch, int64_t deadline_ns) { return wait({batch, nullptr}, deadline_ns); }
    Status wait(const Posted &posted, int64_t deadline_ns);
    void count(uint64_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
    uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); } // done so far
    void drain(int64_t deadline_ns);                                          // of all batches
    bool is_idle();

  private:
    Status submit_now(const Work &work, uint32_t batch, bool &begun, bool wakes);
    Status submit_batch(const Work &work, uint32_t batch, bool &begun);
    void wake_after() { // what was submitted
        if (waker_ != nullptr) waker_->call_after(*ops_, queue_);
    }
    Status watch(uint32_t batch);
    bool is_held_up();

    const dtrain_dv_ops_t *ops_ = nullptr;
    dtrain_dv_mem_t *page_ = nullptr;
    uint64_t offset_ = 0, longest_copy_ = 0;
    Waker *waker_ = nullptr;
    CallThread *calls_ = nullptr;
    std::atomic<uint32_t> *word_ = nullptr;
    std::mutex mutex_; // of the order of batches, and of calls on the queue while later_ is 0
    dtrain_dv_queue_t *queue_ = nullptr;
    uint32_t last_ = 0;  // batch
    uint32_t later_ = 0; // batches that the other thread has not submitted yet
    // If streams may wait: the queue also stores the number of the last batch that has begun.
    static inline std::atomic<bool> streams_wait_{false};
    std::atomic<uint32_t> *begun_ = nullptr;
    std::mutex watched_;        // of what follows
    uint32_t last_watched_ = 0; // batch whose begin is stored
    uint32_t seen_begun_ = 0;
    int64_t seen_ns_ = 0; // when the queue was last seen to begin a batch
    std::atomic<uint64_t> bytes_{0};
};

} // namespace dtrain::accel
