// The order of the calls on a communicator: their numbers, fingerprints, and records of the last of
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/hash.h"
#include "cluster/control/calls.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace dtrain::collectives {

// All ranks make the same calls in the same order; the fingerprint of a call covers all calls up to
// it.
class CallOrder {
  public:
    // A thread's turn to make a call. What the order guards takes a turn as a proof that it is
    // held.
    class Turn {
      public:
        void end() { lock_.unlock(); }
        void resume() { lock_.lock(); }

      private:
        friend CallOrder;
        explicit Turn(std::mutex &mutex) : lock_(mutex) {}
        std::unique_lock<std::mutex> lock_;
    };
    // A call's place in the order.
    struct Ticket {
        uint64_t seq = 0, fingerprint = 0;
    };

    // Fingerprints start from `uid`, so that leftover messages of an earlier communicator with the
    // same tag do not match.
    explicit CallOrder(uint64_t uid) : fingerprint_(uid) {}

    [[nodiscard]] Turn begin() { return Turn(mutex_); }
    uint64_t next(const Turn &) const { return seq_ + 1; } // the number of the next call
    Ticket take(const Turn &, cluster::CallRecord record) {
        record.seq = ++seq_;
        records_[record.seq % kept] = record;
        fingerprint_ = fingerprint_of(fingerprint_, record);
        return {record.seq, fingerprint_};
    }
    uint64_t last(); // the number of the last call; takes a turn

    // Of a call in flight, as in "allreduce of 4 f32, sum (call 7)". Under the agent's lock: the
    // call was posted under it after its record was written.
    std::string describe(uint64_t seq) const;
    // The records of the last `most` calls up to this one (0: the last one); takes a turn.
    std::vector<cluster::CallRecord> recent(uint64_t up_to, size_t most);

  private:
    static constexpr size_t kept = 64;
    static uint64_t fingerprint_of(uint64_t before, const cluster::CallRecord &record) {
        uint64_t small = uint64_t(record.kind) | uint64_t(record.dtype) << 8 |
                         uint64_t(record.op) << 16 | uint64_t(uint32_t(record.root)) << 32;
        return mix(mix(mix(before, record.seq), small), record.count);
    }

    std::mutex mutex_;
    uint64_t seq_ = 0, fingerprint_;
    std::array<cluster::CallRecord, kept> records_{}; // by seq
};

} // namespace dtrain::collectives
