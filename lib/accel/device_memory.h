// Memory of an accelerator that the program has registered, or that was allocated for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/domain.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace dtrain::accel {

// By what others reach memory: ranks in this process by its address, other processes by the handle.
struct SharedAllocation {
    static constexpr size_t most_handle = 64;
    uint8_t handle[most_handle] = {};
    uint64_t bytes = 0;  // of the allocation
    uint64_t offset = 0; // of the memory in it
    uint64_t serial = 0; // another one for each registration in this process
};

// The domain outlives it, as do all domains until the context's memory is gone.
class DeviceMemory {
  public:
    // Registers memory of the program, which stays its own; where: of the address.
    static std::shared_ptr<DeviceMemory> adopt(const Where &where, const void *address,
                                               uint64_t bytes);
    // exportable: share() will be called.
    static Status allocate(Domain &domain, uint64_t bytes, bool exportable,
                           std::shared_ptr<DeviceMemory> &out);
    // Lets other processes import it; UNSUPPORTED says why they cannot.
    Status share(uint64_t allocation_bytes);
    // Frees what was allocated, after the library's own copies in flight.
    ~DeviceMemory();
    DeviceMemory(const DeviceMemory &) = delete;
    DeviceMemory &operator=(const DeviceMemory &) = delete;

    Domain &domain() const { return domain_; }
    const uint8_t *begin() const { return begin_; } // the program's address
    void *device() const { return device_; }        // the device's
    uint64_t bytes() const { return bytes_; }
    bool covers(const void *address, uint64_t bytes) const {
        const auto offset = uint64_t(static_cast<const uint8_t *>(address) - begin_);
        return address >= begin_ && offset <= bytes_ && bytes <= bytes_ - offset;
    }
    const SharedAllocation *shared() const { return shared_ ? &*shared_ : nullptr; }
    // By which the device reaches a byte of it.
    void *reach(const void *address) const {
        return device_ + (static_cast<const uint8_t *>(address) - begin_);
    }

  private:
    DeviceMemory(Domain &domain, const void *begin, void *device, uint64_t bytes)
        : domain_(domain), begin_(static_cast<const uint8_t *>(begin)),
          device_(static_cast<uint8_t *>(device)), bytes_(bytes) {}

    Domain &domain_;
    const uint8_t *begin_;
    uint8_t *device_;
    const uint64_t bytes_;
    dtrain_dv_mem_t *own_ = nullptr; // what was allocated
    std::optional<SharedAllocation> shared_;
};

} // namespace dtrain::accel
