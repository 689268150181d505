// The kernels of a device: a module for each dtype, one for rows of tables, two for update rules.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "driver.h"

#include <atomic>
#include <mutex>

namespace dtrain::cuda {

constexpr uint32_t dtype_count = DTRAIN_U64 + 1; // 0 stands for rows
// Behind the modules of dtypes: those of rules, of f32 and f64.
constexpr uint32_t rules_f32 = dtype_count, rules_f64 = dtype_count + 1,
                   module_count = dtype_count + 2;

// What prepare() calls it; module_count: there is none.
constexpr uint32_t module_of(uint32_t prepared) {
    if (prepared < dtype_count) return prepared;
    constexpr uint32_t rules = DTRAIN_DV_RULES;
    return prepared == (rules | DTRAIN_F32)   ? rules_f32
           : prepared == (rules | DTRAIN_F64) ? rules_f64
                                              : module_count;
}

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
    kernel_spread,
    kernel_round,
    kernel_clip_norms,
    kernel_clip_scale,
    kernel_norms,
    kernel_lamb_norms,
    kernel_lars_ratio,
    kernel_lamb_ratio,
    kernel_adagrad_rows_ratio,
    kernel_add,
    kernel_assign,
    kernel_sgd,
    kernel_momentum,
    kernel_nesterov,
    kernel_adagrad,
    kernel_adagrad_rows,
    kernel_rmsprop,
    kernel_adadelta,
    kernel_adam,
    kernel_adamw,
    kernel_amsgrad,
    kernel_ftrl,
    kernel_lars,
    kernel_lamb,
    kernel_mean,
    kernel_count
};

// The text of a module, and the name that its kernels have ("f32"); made from ptx/ by CMake.
struct ModuleText {
    const char *name, *ptx;
};
extern const ModuleText module_texts[module_count];

class Modules { // thread-safe
  public:
    // Loads a module and all of its functions now, since a driver that loads them at their first
    // launch may wait for the device then. In the device's context.
    Status load(const Driver &driver, const Host &host, uint32_t module);
    // nullptr: there is none, or it is not loaded.
    Function function(uint32_t module, Kernel kernel) const {
        return is_loaded(module) ? functions_[module][kernel] : nullptr;
    }
    bool is_loaded(uint32_t module) const {
        return module < module_count && loaded_[module].load(std::memory_order_acquire);
    }
    void unload(const Driver &driver);

  private:
    std::mutex mutex_;
    std::atomic<bool> loaded_[module_count] = {};
    Module modules_[module_count] = {};
    Function functions_[module_count][kernel_count] = {};
};

} // namespace dtrain::cuda
