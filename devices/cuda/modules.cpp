// Loads the kernels' modules.
// SPDX-License-Identifier: Apache-2.0
#include "modules.h"

namespace dtrain::cuda {
namespace {

constexpr const char *suffixes[] = {
    "sum",          "avg",     "prod",       "min",        "max",        "band",
    "bor",          "bxor",    "scale",      "multiply",   "weigh",      "widen",
    "narrow",       "gather",  "scatter",    "spread",     "round",      "clip_norms",
    "clip_scale",   "norms",   "lamb_norms", "lars_ratio", "lamb_ratio", "adagrad_rows_ratio",
    "add",          "assign",  "sgd",        "momentum",   "nesterov",   "adagrad",
    "adagrad_rows", "rmsprop", "adadelta",   "adam",       "adamw",      "amsgrad",
    "ftrl",         "lars",    "lamb",       "mean"};
static_assert(sizeof suffixes / sizeof *suffixes == kernel_count);

} // namespace

Status Modules::load(const Driver &driver, const Host &host, uint32_t which) {
    const std::lock_guard lock(mutex_);
    if (is_loaded(which)) return DTRAIN_OK;
    const ModuleText &text = module_texts[which];
    Module module = nullptr;
    if (const Result r = driver.module_load(&module, text.ptx); r != success)
        return driver.fail(host, r, "the kernels of %s cannot be loaded", text.name);
    for (uint32_t k = 0; k < kernel_count; k++) {
        char name[64];
        snprintf(name, sizeof name, "dtrain_%s_%s", text.name, suffixes[k]);
        Function function = nullptr;
        Result r = driver.module_function(&function, module, name);
        if (r == not_found) continue; // not every dtype has each
        if (r == success && driver.function_load != nullptr) r = driver.function_load(function);
        if (r != success) {
            (void)driver.module_unload(module);
            return driver.fail(host, r, "the kernel %s cannot be loaded", name);
        }
        functions_[which][k] = function;
    }
    modules_[which] = module;
    loaded_[which].store(true, std::memory_order_release);
    return DTRAIN_OK;
}

void Modules::unload(const Driver &driver) {
    for (const Module module : modules_)
        if (module != nullptr) (void)driver.module_unload(module);
}

} // namespace dtrain::cuda
