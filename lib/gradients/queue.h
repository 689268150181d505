// A gradient queue: named tensors, submitted in any order, that a separate thread reduces.
// SPDX-License-Identifier: Apache-2.0
//
// The thread runs the cycles of Negotiation over a private communicator. Between cycles it reduces
// one bucket at a time, so that more urgent tensors come next. It sleeps while this rank has no
// news, except for one cycle a second in which ranks learn of each other's stalls.
#pragma once
#include "collectives/communicator/communicator.h"
#include "gradients/negotiation.h"
#include "gradients/reducer.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace dtrain::gradients {

struct QueueParams { // 0: use the option gradients.*; times < 0: never
    uint64_t bucket_bytes = 0;
    int64_t cycle_ns = 0;
    int64_t stall_warn_ns = 0;
    int64_t stall_fail_ns = 0;
};

struct Stats {
    uint64_t cycles = 0, exchanges = 0;
    uint64_t tensors = 0, buckets = 0;
    uint64_t fused_tensors = 0, fused_bytes = 0;
    uint64_t stalls = 0;
};

class Queue {
  public:
    // Collective over `parent`, blocking. registry must outlive the queue.
    static Status create(collectives::Communicator &parent, const QueueParams &params,
                         memory::Registry &registry, std::shared_ptr<Queue> &out);
    // Waits until the thread has run a last cycle, which tells the other ranks.
    ~Queue();

    // Any thread. On failure nothing was submitted. blocking: returns when the request is complete,
    // whatever its outcome; timeout_ns as in CallOptions. awaited: the caller waits at once, but
    // elsewhere. Either way a cycle begins at once.
    Status submit(Submission submission, const Buffers &buffers, engine::Request *request,
                  int64_t timeout_ns, bool blocking, bool awaited);
    // The outcome's peer is the rank that joined last. timeout_ns 0: no timeout.
    Status join(engine::Request *request, int64_t timeout_ns, bool blocking);
    void abort(const char *reason);
    Stats stats();

  private:
    struct Work { // of one submission
        Buffers buffers;
        engine::Request *request = nullptr;
        int64_t expires_ns = INT64_MAX;
    };
    struct Joining {
        engine::Request *request = nullptr;
        int64_t expires_ns = INT64_MAX;
    };
    struct Ended { // requests to complete after the lock is released
        engine::Request *request;
        engine::Outcome outcome;
        std::string text;
    };

    Queue(std::unique_ptr<collectives::Communicator> communicator, memory::Registry &registry,
          const Limits &limits, int64_t cycle_ns);
    Status check_open(); // mutex_ must be held
    void wait_for(engine::Request &request);
    int64_t expiry(int64_t timeout_ns, int64_t now_ns) const;

    // Run by the thread (cycle.cpp).
    void run();
    Status live();
    void wait_until_due();
    void note_what_is_due(); // mutex_ must be held
    Status cycle();
    Status exchange_reports(Actions &actions);
    Status gather(const std::vector<uint8_t> &mine, size_t longest, std::vector<uint8_t> &packed,
                  std::vector<std::span<const uint8_t>> &reports);
    void carry_out(const Actions &actions);
    Status reduce_next();
    void end(Status status, const std::string &text);
    void complete(std::vector<Ended> &ended);

    std::unique_ptr<collectives::Communicator> communicator_;
    engine::Agent &agent_;
    const int64_t cycle_ns_;
    const int64_t timeout_ns_; // of a collective that the thread runs
    // Changed with mutex_ held; read by the collective that the thread runs.
    std::atomic<int64_t> due_ns_{INT64_MAX};
    Reducer reducer_;

    std::mutex mutex_;
    std::condition_variable changed_;
    Negotiation negotiation_;
    std::unordered_map<uint64_t, Work> work_; // by the submission's id
    std::vector<Joining> joins_;
    uint64_t ids_ = 0;
    bool news_ = false;   // something changed since the last cycle began
    bool urgent_ = false; // a blocking call waits, or the queue was aborted
    Status ended_ = DTRAIN_OK;
    std::string ended_text_;
    Stats stats_;

    // Only used by the thread.
    int64_t begun_ns_ = 0;    // of the last cycle
    int64_t patience_ns_ = 0; // grows while cycles bring nothing
    bool productive_ = false;
    std::thread thread_;
};

} // namespace dtrain::gradients
