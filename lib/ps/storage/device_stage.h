// A server's way to an accelerator: one queue, pinned memory for data on their way, and memory of
// the device that updates of all its tables use in turn.
// SPDX-License-Identifier: Apache-2.0
//
// What is submitted runs in order, so nothing waits here except for results and for free pinned
// memory, at most `patience`: an accelerator that takes longer counts as failed.
#pragma once
#include "accel/device_memory.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace dtrain::ps {

// All calls need the agent's lock.
class DeviceStage {
  public:
    // The domain outlives it. NO_MEMORY: there is no memory to pin.
    static Status open(accel::Domain &domain, std::shared_ptr<DeviceStage> &out);
    ~DeviceStage();
    DeviceStage(const DeviceStage &) = delete;
    DeviceStage &operator=(const DeviceStage &) = delete;

    accel::Domain &domain() const { return domain_; }
    // Makes the memory for updates at least so large. Its contents are lost.
    Status reserve(uint64_t bytes);
    uint8_t *scratch() const { return static_cast<uint8_t *>(scratch_->device()); }

    // Copies to the device, before what is submitted later. `from` is free when it returns.
    Status put(void *to, const void *from, uint64_t bytes);
    // Submits what put() has kept, and then what work(queue) submits.
    using Work = std::function<Status(dtrain_dv_queue_t *queue)>;
    Status submit(const Work &work);
    Status flush() {
        return submit([](dtrain_dv_queue_t *) -> Status { return DTRAIN_OK; });
    }
    // Copies to the host what is there after all that was submitted, and waits for it.
    Status get(void *to, const void *from, uint64_t bytes);
    Status finish(); // waits for all
    // Before memory of the device is freed: waits, at most so long, whatever has happened.
    void drain();

  private:
    explicit DeviceStage(accel::Domain &domain) : domain_(domain) {}
    struct Slot {
        std::unique_ptr<accel::PinnedBlock> block;
        uint32_t batch = 0; // the last one that uses it
        bool kept = false;  // a copy from it was not submitted yet
    };
    Status take_slot(Slot *&out); // once it is free
    Status wait(uint32_t batch);

    static constexpr uint64_t slot_bytes = 1 << 20;
    accel::Domain &domain_;
    std::shared_ptr<accel::DeviceMemory> scratch_;
    std::array<Slot, 4> slots_;
    size_t next_ = 0;
    std::vector<accel::Copy> copies_;           // of put()
    std::unique_ptr<accel::PinnedBlock> words_; // of the queue
    accel::OwnQueue queue_;
    uint32_t last_ = 0; // batch
};

} // namespace dtrain::ps
