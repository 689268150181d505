// Memory of an accelerator that the program has registered, or that was allocated for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/domain.h"

#include <cstdint>
#include <memory>

namespace dtrain::accel {

// The domain outlives it, as do all domains until the context's memory is gone.
class DeviceMemory {
  public:
    // Registers memory of the program, which stays its own; where: of the address. shared: other
    // processes must be able to import it, else UNSUPPORTED says why they cannot.
    static Status adopt(const Where &where, const void *address, uint64_t bytes, bool shared,
                        std::shared_ptr<DeviceMemory> &out);
    static Status allocate(Domain &domain, uint64_t bytes, bool shared,
                           std::shared_ptr<DeviceMemory> &out);
    // Frees what was allocated, after the library's own copies in flight.
    ~DeviceMemory();
    DeviceMemory(const DeviceMemory &) = delete;
    DeviceMemory &operator=(const DeviceMemory &) = delete;

    Domain &domain() const { return domain_; }
    const uint8_t *begin() const { return begin_; } // the program's address
    uint64_t bytes() const { return bytes_; }
    bool covers(const void *address, uint64_t bytes) const {
        const auto offset = uint64_t(static_cast<const uint8_t *>(address) - begin_);
        return address >= begin_ && offset <= bytes_ && bytes <= bytes_ - offset;
    }
    // By which the device reaches a byte of it.
    void *reach(const void *address) const {
        return device_ + (static_cast<const uint8_t *>(address) - begin_);
    }

  private:
    DeviceMemory(Domain &domain, const void *begin, void *device, uint64_t bytes)
        : domain_(domain), begin_(static_cast<const uint8_t *>(begin)),
          device_(static_cast<uint8_t *>(device)), bytes_(bytes) {}
    Status check_export() const;

    Domain &domain_;
    const uint8_t *begin_;
    uint8_t *device_;
    const uint64_t bytes_;
    dtrain_dv_mem_t *own_ = nullptr; // what was allocated
};

} // namespace dtrain::accel
