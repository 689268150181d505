// Memory that the program registered, or had allocated, with every transport that wants to know.
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

// make() and the destructor under the lock of whoever drives the devices.
class Registration {
  public:
    // All devices or none. The range must be mapped; what kind of memory it is, is checked.
    static Status make(std::span<const std::unique_ptr<transport::Device>> devices,
                       const dtrain_mem_params_t &params, std::unique_ptr<Registration> &out);
    // Of a buffer of the library's own. nullptr: no device gains by it, or it is impossible, as
    // when too much memory is locked; transports then register it for each message.
    static std::unique_ptr<Registration>
    make_own(std::span<const std::unique_ptr<transport::Device>> devices, void *address,
             uint64_t bytes);
    // New memory, shared with the other processes of the host where a transport can.
    static Status allocate(std::span<const std::unique_ptr<transport::Device>> devices,
                           uint64_t bytes, std::unique_ptr<Registration> &out);
    ~Registration();

    const uint8_t *begin() const { return static_cast<const uint8_t *>(params_.address); }
    uint64_t length() const { return params_.length; }
    bool covers(const void *address, uint64_t bytes) const {
        uint64_t offset = uint64_t(static_cast<const uint8_t *>(address) - begin());
        return address >= params_.address && offset <= length() && bytes <= length() - offset;
    }
    // The plugin's handle for the device-th device; NULL when it wants none.
    dtrain_tp_mr_t *handle(size_t device) const { return handles_[device]; }

    // What the host's other processes can map; nullptr: they cannot.
    const SharedPages *shared() const { return pages_.get(); }

    std::atomic<uint32_t> users{0}; // operations in flight

  private:
    Registration(std::span<const std::unique_ptr<transport::Device>> devices,
                 const dtrain_mem_params_t &params)
        : devices_(devices), params_(params) {}
    Status register_everywhere();

    std::span<const std::unique_ptr<transport::Device>> devices_;
    dtrain_mem_params_t params_;
    std::vector<dtrain_tp_mr_t *> handles_;
    std::unique_ptr<SharedPages> pages_;
    bool mapped_ = false; // by allocate(), without pages to share
};

} // namespace dtrain::memory
