// Memory of this process that other processes of the host can map: pages of a transport's window.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "transport/device.h"

#include <cstdint>
#include <memory>

namespace dtrain::memory {

// Members of the window: the owner, and a process that maps it.
inline constexpr uint32_t sharing_members = 2;

// All functions run under the lock that guards the device. The device outlives this object.
class SharedPages {
  public:
    // Allocates zeroed memory in whole pages.
    static Status allocate(transport::Device &device, uint64_t bytes,
                           std::unique_ptr<SharedPages> &out);
    // Moves the pages that hold these bytes into shared memory; their addresses and contents stay.
    // They must be private, readable and writable. What other threads write to them meanwhile is
    // lost.
    static Status adopt(transport::Device &device, void *address, uint64_t bytes,
                        std::unique_ptr<SharedPages> &out);
    // Frees allocated memory. Adopted pages become private memory again, if they are still mapped
    // at their place.
    ~SharedPages();

    const transport::Device &device() const { return device_; }
    // The address for the program; page-aligned.
    uint8_t *address() const { return adopted_ ? target_ : address_; }
    uint64_t bytes() const { return bytes_; }         // whole pages
    const uint8_t *handle() const { return handle_; } // to be passed to window_attach()

  private:
    explicit SharedPages(transport::Device &device) : device_(device) {}
    void give_back();

    transport::Device &device_;
    dtrain_tp_win_t *window_ = nullptr;
    uint8_t *address_ = nullptr; // of the window
    uint8_t *target_ = nullptr;  // of the adopted pages
    uint64_t bytes_ = 0;
    bool adopted_ = false;
    uint8_t handle_[transport::Device::max_blob] = {};
};

} // namespace dtrain::memory
