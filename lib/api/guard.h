// Keeps exceptions inside the C API, and copies parameter structs of other library versions.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/memory_reserve.h"
#include "base/status.h"
#include "base/uncancelled.h"
#include "dtrain.h"

#include <cstring>

namespace dtrain::api {

inline Status out_of_memory() { return fail(DTRAIN_ERR_NO_MEMORY, "out of memory"); }

// Returns the status for the exception being handled, which comes from the standard library: dtrain
// throws none. If a callback ends the thread (pthread_exit), that unwinding continues.
[[gnu::cold]] Status caught();

// Runs the body of an operation and turns exceptions into a status.
template <class F> Status catching(F &&body) {
    try {
        return body();
    } catch (...) {
        return caught();
    }
}

// Like catching(), for all other calls. They may take long, so thread cancellation is off
// meanwhile.
template <class F> Status guard(F &&body) {
    const Uncancelled uncancelled;
    return catching(body);
}

// Like guard(), for calls that create something: refused while the memory reserve is in use.
template <class F> Status guard_new(F &&body) {
    return guard([&]() -> Status { return MemoryReserve::drawn_on() ? out_of_memory() : body(); });
}

// Copies the caller's *_params; NULL means all defaults. A struct from an older program is shorter:
// its missing fields become 0. One from a newer program is longer: its unknown fields must be 0.
template <class T> Status take(T &out, const T *in) {
    uint32_t size = 0;
    if (in != nullptr) std::memcpy(&size, in, sizeof size);
    if (size == sizeof out) { // the usual case
        std::memcpy(static_cast<void *>(&out), in, sizeof out);
        return DTRAIN_OK;
    }
    std::memset(static_cast<void *>(&out), 0, sizeof out);
    if (in != nullptr) {
        if (size < 8)
            return fail(DTRAIN_ERR_INVALID,
                        "struct_size %u is too small: initialize the params with DTRAIN_INIT",
                        size);
        const auto *bytes = reinterpret_cast<const unsigned char *>(in);
        for (size_t i = sizeof out; i < size; i++)
            if (bytes[i] != 0)
                return fail(DTRAIN_ERR_UNSUPPORTED,
                            "the program sets a parameter that this library (%zu of %u bytes) does "
                            "not know; use a newer libdtrain",
                            sizeof out, size);
        std::memcpy(static_cast<void *>(&out), in, size < sizeof out ? size : sizeof out);
    }
    out.struct_size = sizeof out;
    return DTRAIN_OK;
}

// Fills the caller's struct of results, up to its struct_size.
template <class T> Status give(T *out, T all, const char *whose) {
    if (out == nullptr || out->struct_size < 8)
        return fail(DTRAIN_ERR_INVALID, "%s: stats is NULL or not initialized (DTRAIN_INIT)",
                    whose);
    all.struct_size = out->struct_size;
    std::memcpy(static_cast<void *>(out), &all,
                all.struct_size < sizeof all ? all.struct_size : sizeof all);
    return DTRAIN_OK;
}

} // namespace dtrain::api
