// An opened device of a transport.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/fd.h"
#include "transport/host.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::transport {

// Owns the plugin's handle. open() checks what the plugin reports about the device, so it can be
// relied on: the operations of each capability exist, lengths are bounded. Calls through ops()
// follow the locking rule of dtrain_transport.h; everything else here is constant.
class Device {
  public:
    static constexpr uint32_t max_blob = 512; // bytes of an address, rkey or window handle

    // Opens all devices that the transport `name` ("tcp") lists, or none, and adds them to `out`.
    // The plugin is searched by option plugin.path. UNSUPPORTED if this machine has no device for
    // it. host must outlive the devices.
    static Status open(const Host &host, std::string_view name, const Options &options,
                       std::vector<std::unique_ptr<Device>> &out);
    ~Device();
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;

    std::string_view name() const { return name_; }   // of the transport
    std::string_view label() const { return label_; } // the transport's name of the device
    const dtrain_tp_attr_t &attr() const { return attr_; }
    const dtrain_tp_ops_t &ops() const { return ops_; } // operations that the plugin lacks are NULL
    dtrain_tp_dev_t *dev() const { return dev_; }
    const std::vector<uint8_t> &address() const { return address_; }
    // Checks all messages from now on (verifier.h). Before anything is connected.
    Status verify();
    // Reads the address again, before anything is connected.
    Status renew_address();
    // Whether progress() has moved bytes since the last call of this function. Under the lock.
    bool has_moved() {
        if (ops_.moved == nullptr) return false;
        uint64_t before = moved_;
        moved_ = ops_.moved(dev_);
        return moved_ != before;
    }
    // Calls the plugin's operation. Under the lock.
    void limit_eager(uint64_t bytes) {
        eager_limit_ = bytes;
        if (ops_.limit_eager != nullptr) ops_.limit_eager(dev_, bytes);
    }
    uint64_t eager_limit() const { return eager_limit_; } // as set by limit_eager()
    // Calls the plugin's operation, if it has it.
    bool can_withdraw() const { return ops_.withdraw != nullptr; }
    void withdraw(uint64_t cookie) {
        if (can_withdraw())
            ops_.withdraw(dev_, cookie);
        else
            ops_.cancel(dev_, cookie);
    }
    bool has(uint64_t capability) const { return (attr_.caps & capability) == capability; }

  private:
    explicit Device(const dtrain_tp_plugin_t &plugin);
    Status start(const Host &host, const char *device);
    Status check() const;

    std::shared_ptr<const StandardDescriptors> occupied_; // held while the device is open
    std::string name_, label_;
    dtrain_tp_ops_t ops_{};
    dtrain_tp_attr_t attr_{};
    dtrain_tp_dev_t *dev_ = nullptr;
    std::vector<uint8_t> address_;
    uint64_t moved_ = 0, eager_limit_ = UINT64_MAX;
};

} // namespace dtrain::transport
