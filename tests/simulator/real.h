// The functions that the simulator stands in front of.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <dlfcn.h>

namespace dtrain::simulator {

// A static variable with an initializer would have a lock, at which a thread without the baton
// could keep the one that has it waiting.
inline void *look_up(std::atomic<void *> &known, const char *name, const char *version = nullptr) {
    if (void *function = known) return function;
    return known = version != nullptr ? dlvsym(RTLD_NEXT, name, version) : dlsym(RTLD_NEXT, name);
}

} // namespace dtrain::simulator

// The C library's function of this name (or a sanitizer's).
#define REAL(name, ...)                                                                            \
    ([] {                                                                                          \
        static constinit std::atomic<void *> known{nullptr};                                       \
        return reinterpret_cast<decltype(&::name)>(                                                \
            ::dtrain::simulator::look_up(known, #name __VA_OPT__(, ) __VA_ARGS__));                \
    }())
// Defines a function instead of the C library's.
#define INSTEAD extern "C" [[gnu::visibility("default")]]
