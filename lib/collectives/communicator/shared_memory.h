// A communicator's window, and the memory of its ranks that others may reach, inside a host.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/faults.h"
#include "collectives/communicator/membership.h"
#include "collectives/window/peer_memory.h"
#include "collectives/window/window.h"

#include <cstdint>
#include <memory>

namespace dtrain::collectives {

struct Setup;

// All ranks use it, or none does: opened by each rank first, then used or closed as they have
// agreed.
class SharedMemory {
  public:
    // All must outlive it; close() comes before its end.
    SharedMemory(cluster::Session &session, const Membership &ranks, Faults &faults)
        : session_(session), ranks_(ranks), faults_(faults) {}

    // On rank 0: makes the window if the ranks can share one, and puts its handle into the setup.
    void offer(Setup &setup);
    // On all ranks; blocking. Fails, after a warning, if this rank cannot attach.
    Status open(const Setup &setup, int64_t deadline_ns);
    void use() { used_ = std::move(opening_); }
    void close(); // under the agent's lock

    bool is_used() const { return used_ != nullptr; }
    Window *window() const { return used_.get(); }
    PeerMemory &peers() const { return *peers_; }
    // Numbers the calls in the window, equally on all ranks.
    uint64_t next_call(const CallOrder::Turn &) { return ++calls_; }

  private:
    Status attach(const Setup &setup, int64_t deadline_ns);

    cluster::Session &session_;
    const Membership &ranks_;
    Faults &faults_;
    std::unique_ptr<Window> opening_, used_;
    std::unique_ptr<PeerMemory> peers_; // of the window that is opening or used
    uint64_t calls_ = 0;                // guarded by the order of calls
};

} // namespace dtrain::collectives
