// A reduction of ranks whose buffers all lie on one accelerator.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/window/peer_devices.h"
#include "collectives/window/window.h"
#include "engine/landing.h"

#include <cstdint>
#include <string>

namespace dtrain::collectives {

// Rank 0, the leader, sums all ranks' buffers by one kernel, which stores the result into all of
// them; the others do nothing on the accelerator. The kernel is submitted once all ranks have made
// the call, so it waits for nobody, and its result is that of the host, since it sums in the order
// of ranks. Each rank's flags tell the leader where its buffers are. A part of WindowBulk, which
// exchanges the headers and sees to it that all choose the same way.
class WindowDevice {
  public:
    static constexpr uint32_t leader = 0;

    // landing: undecided. bytes: of each buffer.
    WindowDevice(engine::Landing &landing, PeerDevices &peers, uint32_t ranks, uint64_t bytes)
        : landing_(landing), buffers_(*landing.undecided()), peers_(peers), ranks_(ranks),
          bytes_(bytes) {}

    engine::Landing &landing() const { return landing_; }
    const uint8_t *device() const { return buffers_.domain->attr().uuid; }
    bool can_serve() const {
        return ranks_ <= buffers_.domain->attr().max_operands && !peers_.has_failed();
    }
    void describe(DeviceOffer &out) const; // this rank's buffers

    // The leader's part. offer(rank): a reference to what each rank has described.
    template <class Offers> bool reaches_all(Offers &&offer) {
        for (; mapped_ < ranks_; mapped_++)
            if (!map(mapped_, offer(mapped_))) return false;
        return true;
    }
    // Imports what is not mapped yet; under the agent's lock.
    template <class Offers> Status import_all(Offers &&offer) {
        while (!reaches_all(offer))
            if (Status s = import(mapped_, offer(mapped_)); s != DTRAIN_OK) return s;
        return DTRAIN_OK;
    }
    // Starts the kernel. After a failure with is_begun() it may run, and look() fails, too.
    Status submit(uint32_t dtype, uint32_t op, uint64_t count);
    bool is_begun() const { return begun_; }
    Status look(); // OK: it is done; IN_PROGRESS; or what has happened to the accelerator
    // Not again by this communicator: another way is taken, after a warning.
    void give_up() { peers_.note_failure(); }

  private:
    static bool is_of_this_process(const DeviceOffer &offer);
    bool map(uint32_t rank, const DeviceOffer &offer);
    Status import(uint32_t rank, const DeviceOffer &offer);

    engine::Landing &landing_;
    const accel::DirectBuffers buffers_;
    PeerDevices &peers_;
    const uint32_t ranks_;
    const uint64_t bytes_;
    const void *sends_[max_window_ranks];
    void *recvs_[max_window_ranks]; // of the ranks that want the result
    uint32_t results_ = 0, mapped_ = 0;
    bool begun_ = false;
    uint32_t batch_ = 0, looks_ = 0;
    Status failure_ = DTRAIN_OK;
    std::string failure_text_;
};

} // namespace dtrain::collectives
