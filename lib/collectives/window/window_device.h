// A collective of ranks whose buffers all lie on one accelerator.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/quiet.h"
#include "collectives/call/collective.h"
#include "collectives/window/device_job.h"
#include "collectives/window/peer_devices.h"
#include "collectives/window/window.h"
#include "engine/landing.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::collectives {

// Rank 0, the leader, does the job for all ranks: kernels and copies between their buffers; the
// others do nothing on the accelerator. The job is submitted once all ranks have made the call, so
// it waits for nobody, and its result is that of the host, since it sums in the order of ranks.
// Each rank's flags tell the leader where its buffers are. A part of WindowBulk, which exchanges
// the headers and sees to it that all choose the same way.
class WindowDevice {
  public:
    static constexpr uint32_t leader = 0;

    // Whether calls like this one can be done so; the other ranks' calls may differ in `in_place`.
    static bool serves(const CollectiveSpec &spec);
    // The dtype whose kernels the leader runs for calls of this dtype; 0: those for bytes.
    static uint32_t kernels_for(const CollectiveSpec &spec, uint32_t dtype);

    // landing: undecided. spec: outlives this.
    WindowDevice(engine::Landing &landing, PeerDevices &peers, const CollectiveSpec &spec)
        : landing_(landing), buffers_(*landing.undecided()), peers_(peers), spec_(spec),
          ranks_(uint32_t(spec.size)) {}

    engine::Landing &landing() const { return landing_; }
    const uint8_t *device() const { return buffers_.domain->attr().uuid; }
    bool can_serve() const {
        return ranks_ <= buffers_.domain->attr().max_operands && !peers_.has_failed();
    }
    void describe(DeviceOffer &out) const; // this rank's buffers

    // The leader's part. offer(rank): a copy of what each rank has described.
    template <class Offers> bool reaches_all(Offers &&offer) {
        for (; mapped_ < ranks_; mapped_++)
            if (!map(mapped_, offer(mapped_))) return false;
        return true;
    }
    // Imports what is not mapped yet; under the agent's lock. BUSY: that has to wait, because a
    // stream does; what is missing is noted for later.
    template <class Offers> Status import_all(Offers &&offer) {
        const accel::Quiet quiet;
        for (; !reaches_all(offer); mapped_ += quiet ? 0 : 1) {
            if (!quiet)
                want(mapped_, offer(mapped_));
            else if (Status s = import(mapped_, offer(mapped_)); s != DTRAIN_OK)
                return s;
        }
        return quiet ? DTRAIN_OK : DTRAIN_ERR_BUSY;
    }
    // Starts the job. After a failure with is_begun() it may run, and look() fails, too.
    Status submit(const DeviceJob &job, uint32_t dtype, uint32_t op);
    bool is_begun() const { return begun_; }
    // OK: it is done; IN_PROGRESS; or what has happened to the accelerator. May find that the job
    // has not begun.
    Status look();
    // Not again by this communicator: another way is taken, after a warning.
    void give_up() { peers_.note_failure(); }

  private:
    struct Need { // bytes of a rank's buffers that the call uses
        uint64_t send, recv;
    };
    static bool is_of_this_process(const DeviceOffer &offer);
    Need need_of(uint32_t rank) const;
    // Where the leader reaches a rank's buffer; nullptr: nowhere yet.
    uint8_t *find(uint32_t rank, const DeviceOffer &offer, const accel::DirectBuffer &buffer,
                  uint64_t bytes);
    bool map(uint32_t rank, const DeviceOffer &offer);
    Status import(uint32_t rank, const DeviceOffer &offer);
    void want(uint32_t rank, const DeviceOffer &offer);
    uint8_t *at(const DevicePart &part) const {
        return (part.in_result ? recvs_ : sends_)[part.rank] + part.offset;
    }
    DeviceJob with_factors(DeviceJob job) const;
    // A step with addresses, so that it can be submitted when this is gone.
    struct Task {
        accel::Domain *domain;
        std::vector<const void *> srcs;
        std::vector<void *> dsts;
        uint64_t bytes = 0;
        double factor = 1;
        uint32_t element_bytes = 1, dtype = 0, op = 0;
        bool sums() const { return srcs.size() > 1; }
        bool scales() const { return factor != 1; }
        Status submit(dtrain_dv_queue_t *queue, bool &begun) const;
    };
    Task task_of(const DeviceStep &step, uint32_t dtype, uint32_t op) const;

    engine::Landing &landing_;
    const accel::DirectBuffers buffers_;
    PeerDevices &peers_;
    const CollectiveSpec &spec_;
    const uint32_t ranks_;
    uint8_t *sends_[max_window_ranks], *recvs_[max_window_ranks]; // of the first mapped_ ranks
    double before_[max_window_ranks], after_[max_window_ranks];   // their factors
    uint32_t mapped_ = 0;
    bool begun_ = false;
    accel::OwnQueue::Posted posted_;
    uint32_t looks_ = 0;
    Status failure_ = DTRAIN_OK;
    std::string failure_text_;
};

} // namespace dtrain::collectives
