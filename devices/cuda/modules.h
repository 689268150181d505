// The kernels of a device, a module for each dtype and one for rows of tables.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "driver.h"

#include <atomic>
#include <mutex>

namespace dtrain::cuda {

constexpr uint32_t dtype_count = DTRAIN_U64 + 1; // 0 stands for rows

// What a kernel does: the end of its name.
enum Kernel : uint32_t {
    kernel_sum,
    kernel_avg,
    kernel_prod,
    kernel_min,
    kernel_max,
    kernel_band,
    kernel_bor,
    kernel_bxor,
    kernel_scale,
    kernel_multiply,
    kernel_weigh,
    kernel_widen,
    kernel_narrow,
    kernel_gather,
    kernel_scatter,
    kernel_count
};

// The text of a module, and the name that its kernels have ("f32"); made from ptx/ by CMake.
struct ModuleText {
    const char *name, *ptx;
};
extern const ModuleText module_texts[dtype_count];

class Modules { // thread-safe
  public:
    // Loads a module and all of its functions now, since a driver that loads them at their first
    // launch may wait for the device then. In the device's context.
    Status load(const Driver &driver, const Host &host, uint32_t dtype);
    // nullptr: there is none, or it is not loaded.
    Function function(uint32_t dtype, Kernel kernel) const {
        return is_loaded(dtype) ? functions_[dtype][kernel] : nullptr;
    }
    bool is_loaded(uint32_t dtype) const {
        return dtype < dtype_count && loaded_[dtype].load(std::memory_order_acquire);
    }
    void unload(const Driver &driver);

  private:
    std::mutex mutex_;
    std::atomic<bool> loaded_[dtype_count] = {};
    Module modules_[dtype_count] = {};
    Function functions_[dtype_count][kernel_count] = {};
};

} // namespace dtrain::cuda
