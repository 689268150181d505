// What large collectives in shared memory have in common: the choice between direct and pipeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/window/peer_memory.h"
#include "collectives/window/window_device.h"
#include "collectives/window/window_operation.h"

#include <algorithm>
#include <memory>

namespace dtrain::collectives {

// Limits of one step, because the agent has other work, too.
inline constexpr uint64_t bytes_per_step = 1 << 20; // direct
inline constexpr uint32_t rounds_per_step = 8;      // rounds of the pipeline's stages
inline constexpr uint64_t smallest_chunk = 16 << 10;
inline constexpr uint64_t cache_bytes = 32
                                        << 20; // results of larger calls do not stay in the cache

// What a rank's header tells the others: where its buffers are.
struct Offer {
    static constexpr uint64_t nowhere = UINT64_MAX;
    SharedBuffers shared;
    uint64_t address = nowhere; // in its process, of what the kernel copies from or to

    // On the accelerator with this uuid; the rank's flags say where. Others take it for memory that
    // they cannot reach.
    static Offer on_device(const uint8_t *uuid);
    bool is_on_device(const uint8_t *uuid) const;
};

// Direct way: if all buffers that other ranks must touch are shared, the ranks load from and store
// to them. If all ranks offer addresses, the kernel copies between their processes instead.
// Otherwise the data goes block by block through the rings (the pipeline); a rank that offers
// neither begins the pipeline at once. If all ranks offer buffers on one accelerator, rank 0 works
// on these (WindowDevice); else a rank with such buffers first has them copied to host memory, and
// goes on as the others do.
class WindowBulk : public WindowOperation {
  public:
    WindowBulk(engine::Request *completed, const WindowCall &call, const SharedBuffers &buffers,
               PeerMemory &peers, engine::OperationListener &listener, bool on_stack);

  protected:
    // Bytes of the buffers of `rank` that other ranks touch in the direct way; 0: none.
    virtual uint64_t touched_bytes(uint32_t rank) const = 0;
    virtual bool touches(uint32_t rank, uint32_t owner) const = 0; // other ranks' buffers
    // Adds the address from or to which the kernel may copy, if that is worthwhile.
    virtual void offer_addresses(Offer &) {}
    // Whether the way also depends on the offers of ranks whose buffers no other one touches yet.
    virtual bool needs_all_offers() const { return false; }
    virtual void have_offers() {} // the buffers are shared, or else by_kernel_
    // Whether the kernel shall copy a call of this size, given the smallest for which it is faster
    // where cores are near and where they are far apart.
    bool is_worth_kernel(uint64_t bytes, uint64_t least_near, uint64_t least_far);
    // Does a part of the work, some megabytes at most; returns `moved` to be called again. sends_
    // and recvs_ hold the addresses of the ranks that this rank touches; if by_kernel_, those
    // are addresses in their processes.
    virtual Step direct() = 0;
    virtual Step pipeline() = 0; // works as move()
    virtual bool pipeline_lacks(uint32_t rank) const = 0;
    // For kinds that WindowDevice serves: that this rank's buffers may be there.
    void consider_device();
    virtual DeviceJob device_job() const = 0; // what the leader does then

    // The ranks wait for positions of the rings, which each rank's flags count.
    uint64_t end() const { return call_.position + call_.ring_bytes; }
    void publish(Counter RankFlags::*counter, uint64_t position) {
        (call_.window->flags(rank_).*counter).value.store(position, std::memory_order_release);
        call_.window->ring();
    }
    bool has_published(uint32_t rank, Counter RankFlags::*counter, uint64_t position) const {
        return (call_.window->flags(rank).*counter).value.load(std::memory_order_acquire) >=
               position;
    }

    Offer offer_of(uint32_t rank) const;

    const uint8_t *sends_[max_window_ranks];
    uint8_t *recvs_[max_window_ranks];
    bool by_kernel_ = false;
    PeerMemory &peers_;

  private:
    enum class Stage : uint8_t {
        announce,
        gather,
        map,
        direct,
        end,
        gather_devices,
        device,
        copies,
        pipeline
    };
    Step move() override;
    bool lacks(uint32_t rank) const override;
    const char *slow_part() const override {
        return stage_ == Stage::device ? "the accelerator" : nullptr;
    }
    const char *way() const override {
        if (stage_ == Stage::pipeline) return "window pipeline";
        if (stage_ == Stage::gather_devices || stage_ == Stage::device) return "window device";
        return by_kernel_ ? "window kernel copies" : "window direct";
    }
    Step announce_buffers();
    Step gather();
    Step map();
    Step work();
    template <class Matters> bool any_has_given_up(Matters &&matters) const;
    bool some_owner_has_given_up() const;
    bool some_rank_has_given_up() const;
    Step finish();
    Step announce_device();
    Step gather_devices();
    Step run_device();
    Step lead_device();
    Step use_copies();
    Step decline_device(bool for_good);
    const DeviceOffer &device_offer(uint32_t rank) const {
        return call_.window->flags(rank).on_device[call_.number & 1];
    }

    Offer own_;
    bool all_shared_ = true; // for the ranks below next_
    Stage stage_ = Stage::announce;
    uint32_t next_ = 0;                    // the next rank to look at
    std::unique_ptr<WindowDevice> device_; // nullptr: the buffers are the host's
};

} // namespace dtrain::collectives
