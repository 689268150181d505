// An operation's part in a stream of the program's.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/domain.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

namespace dtrain::accel {

// Copies of the input, a stop until release(), copies of the results: all is put into the stream at
// once, so nothing that ends the stop has to be submitted after it. The stop ends by a store of the
// host, so the stream goes on whatever has become of the operation. Lives until is_finished().
class StreamWork {
  public:
    // UNSUPPORTED: the accelerator's queues cannot wait; INVALID: the stream is of another device;
    // STATE: it is being captured.
    static Status open(Domain &domain, void *stream, std::shared_ptr<StreamWork> &out);
    ~StreamWork();
    StreamWork(const StreamWork &) = delete;
    StreamWork &operator=(const StreamWork &) = delete;

    // Waits for nothing but the driver, and who is Quiet. On failure the stream goes on by itself.
    Status enqueue(std::span<const Copy> inputs, std::span<const Copy> results);
    bool is_ready() const { return has(words_->ready); } // the input is there
    bool is_finished();                                  // the stream has left it
    void release() { words_->done.store(1, std::memory_order_release); }
    Status check(); // OK while the accelerator goes on; waits for no call that waits for streams

  private:
    struct Words { // each becomes 1
        std::atomic<uint32_t> ready{0}, done{0}, finished{0};
    };
    static bool has(const std::atomic<uint32_t> &word) {
        return word.load(std::memory_order_acquire) != 0;
    }
    explicit StreamWork(Domain &domain) : domain_(domain) {}
    Status copy(std::span<const Copy> copies) {
        return submit_copies(domain_.ops(), queue_, copies, domain_.attr().limit_bytes);
    }
    Status signal(const std::atomic<uint32_t> &word);
    uint64_t offset(const std::atomic<uint32_t> &word) const;

    Domain &domain_;
    std::unique_ptr<PinnedBlock> page_; // of the words
    Words *words_ = nullptr;
    void end_wait();

    std::atomic<bool> waits_{false}; // for all that Quiet says
    dtrain_dv_queue_t *queue_ = nullptr;
};

} // namespace dtrain::accel
