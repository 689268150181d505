// Memory that the program has registered or allocated, registered with every transport that needs
// it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "memory/shared_pages.h"
#include "transport/device.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace dtrain::memory {

// make() and the destructor must run under the lock that guards the devices.
class Registration {
  public:
    // Registers host memory with all devices or none. The range must be mapped.
    static Status make(std::span<const std::unique_ptr<transport::Device>> devices,
                       const dtrain_mem_params_t &params, std::unique_ptr<Registration> &out);
    // Registers a buffer of the library itself. nullptr: no device benefits, or it is impossible,
    // for example because too much memory is locked; transports then register it for each message.
    static std::unique_ptr<Registration>
    make_own(std::span<const std::unique_ptr<transport::Device>> devices, void *address,
             uint64_t bytes);
    // Allocates memory, shared with the other processes of the host if a transport can.
    static Status allocate(std::span<const std::unique_ptr<transport::Device>> devices,
                           uint64_t bytes, std::unique_ptr<Registration> &out);
    ~Registration();

    const uint8_t *begin() const { return static_cast<const uint8_t *>(params_.address); }
    uint64_t length() const { return params_.length; }
    bool covers(const void *address, uint64_t bytes) const {
        uint64_t offset = uint64_t(static_cast<const uint8_t *>(address) - begin());
        return address >= params_.address && offset <= length() && bytes <= length() - offset;
    }
    // The plugin's handle for the device with this index; NULL if the device needs none.
    dtrain_tp_mr_t *handle(size_t device) const { return handles_[device]; }

    // What other processes of the host can map; nullptr: they cannot map it.
    const SharedPages *shared() const { return pages_.get(); }

    std::atomic<uint32_t> users{0}; // number of operations in flight

  private:
    Registration(std::span<const std::unique_ptr<transport::Device>> devices,
                 const dtrain_mem_params_t &params)
        : devices_(devices), params_(params) {}
    Status register_everywhere();

    std::span<const std::unique_ptr<transport::Device>> devices_;
    dtrain_mem_params_t params_;
    std::vector<dtrain_tp_mr_t *> handles_;
    std::unique_ptr<SharedPages> pages_;
    bool mapped_ = false; // by allocate(), not shareable
};

} // namespace dtrain::memory
