// A queue of an accelerator for the library's own work.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/pinned_memory.h"
#include "accel/waker.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>

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
    // page: holds the words at this offset, 8 bytes; outlives the queue, as dev does. waker: is
    // told of each batch that is done; nullptr: no thread sleeps until then.
    Status open(const dtrain_dv_ops_t &ops, dtrain_dv_dev_t *dev, const PinnedBlock &page,
                uint64_t offset, uint64_t longest_copy, Waker *waker);
    ~OwnQueue() { close(); }
    void close();

    // Submits a batch; never waits. Its number is set even on failure: some of the copies may be in
    // flight until it has passed.
    Status submit(std::span<const Copy> copies, uint32_t &batch);
    // Calls work(queue, begun), which submits anything. begun: whether some of it is in flight,
    // perhaps even on failure (nobody hears of its end then). wakes: the waker is told of its end.
    using Work = std::function<Status(dtrain_dv_queue_t *queue, bool &begun)>;
    Status submit(const Work &work, uint32_t &batch, bool &begun, bool wakes = true);
    // Whether this batch and all before it are done.
    bool passed(uint32_t batch) const {
        return int32_t(word_->load(std::memory_order_acquire) - batch) >= 0;
    }
    // OK while the queue goes on; else what has happened to the accelerator, or that a stream of
    // the program's which waits holds the queue up: the accelerator's library may run unrelated
    // streams one after the other.
    Status check();
    // From now on streams of the program's may wait for this process's operations.
    static void expect_waiting_streams() { streams_wait_.store(true, std::memory_order_relaxed); }
    // Sleeps until the batch has passed. TIMEOUT: at the deadline (monotonic_clock()).
    Status wait(uint32_t batch, int64_t deadline_ns);
    void count(uint64_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
    uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); } // done so far
    void drain(int64_t deadline_ns);                                          // of all batches
    bool is_idle();

  private:
    template <class Submit> Status submit_batch(Submit &&submit, uint32_t &batch, bool wakes);
    Status watch(uint32_t batch);
    bool is_held_up();

    const dtrain_dv_ops_t *ops_ = nullptr;
    dtrain_dv_mem_t *page_ = nullptr;
    uint64_t offset_ = 0, longest_copy_ = 0;
    Waker *waker_ = nullptr;
    std::atomic<uint32_t> *word_ = nullptr;
    std::mutex mutex_; // of all calls on the queue
    dtrain_dv_queue_t *queue_ = nullptr;
    uint32_t last_ = 0; // batch
    // If streams may wait: the queue also stores the number of the last batch that has begun.
    static inline std::atomic<bool> streams_wait_{false};
    std::atomic<uint32_t> *begun_ = nullptr;
    uint32_t last_watched_ = 0; // batch whose begin is stored
    uint32_t seen_begun_ = 0;
    int64_t seen_ns_ = 0; // when the queue was last seen to begin a batch
    std::atomic<uint64_t> bytes_{0};
};

} // namespace dtrain::accel
