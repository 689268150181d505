// The workers of a table: which of them are present, have joined, or were lost.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table/protocol.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace dtrain::ps {

// A worker asks for the table with a create request and joins if it asks for the same table as the
// others. All are answered when every present worker has joined.
class Membership {
  public:
    explicit Membership(uint32_t workers) : workers_(workers), present_(workers) {}

    uint32_t size() const { return static_cast<uint32_t>(workers_.size()); } // also absent workers
    uint32_t count() const { return present_; }
    bool present(uint32_t worker) const { return workers_[worker].present; }
    bool joined(uint32_t worker) const { return workers_[worker].joined; }
    bool lost(uint32_t worker) const { return workers_[worker].lost; }
    Reason why_lost(uint32_t worker) const {
        return workers_[worker].gave_up ? Reason::gave_up : Reason::worker_lost;
    }
    bool complete() const { return joined_ == present_; } // all present workers have joined

    // Keeps the create request of a worker that has not joined, until take_asking().
    void ask(const RequestHeader &header) { asking_.push_back(header); }
    uint32_t first_asking() const { return asking_.front().worker; }
    std::vector<RequestHeader> take_asking() { return std::exchange(asking_, {}); }
    void join(uint32_t worker) {
        workers_[worker].joined = true;
        ++joined_;
    }
    // The worker leaves regularly, or is lost. It must be present.
    void leave(uint32_t worker) { remove(worker); }
    void lose(uint32_t worker) {
        remove(worker);
        workers_[worker].lost = true;
    }
    void note_give_up(uint32_t worker) { workers_[worker].gave_up = true; }

  private:
    struct Worker {
        bool present = true, joined = false, lost = false, gave_up = false;
    };
    void remove(uint32_t worker) {
        workers_[worker].present = false;
        --present_;
        joined_ -= workers_[worker].joined;
        std::erase_if(asking_, [&](const RequestHeader &its) { return its.worker == worker; });
    }

    std::vector<Worker> workers_;
    uint32_t present_, joined_ = 0; // numbers of present workers, and of those that have joined
    std::vector<RequestHeader> asking_;
};

} // namespace dtrain::ps
