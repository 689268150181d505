// The exception wall and the rule for growing parameter structs.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/memory_reserve.h"
#include "base/status.h"
#include "base/uncancelled.h"
#include "dtrain.h"

#include <cstring>

namespace dtrain::api {

inline Status out_of_memory() { return fail(DTRAIN_ERR_NO_MEMORY, "out of memory"); }

// The status for the exception that is being handled: the standard library's, since our code throws
// none. The end of the thread, by a callback, goes on.
[[gnu::cold]] Status caught();

// Runs the body of an operation.
template <class F> Status catching(F &&body) {
    try {
        return body();
    } catch (...) {
        return caught();
    }
}

// Of every other call, which may be long: the thread is not cancelled in it.
template <class F> Status guard(F &&body) {
    const Uncancelled uncancelled;
    return catching(body);
}

// Of a call that makes something new.
template <class F> Status guard_new(F &&body) {
    return guard([&]() -> Status { return MemoryReserve::drawn_on() ? out_of_memory() : body(); });
}

// Copies a caller's *_params (NULL: all default). A shorter struct, of an older program, leaves the
// rest zero; of a longer one the part unknown here must be zero.
template <class T> Status take(T &out, const T *in) {
    uint32_t size = 0;
    if (in != nullptr) std::memcpy(&size, in, sizeof size);
    if (size == sizeof out) { // nearly always
        std::memcpy(static_cast<void *>(&out), in, sizeof out);
        return DTRAIN_OK;
    }
    std::memset(static_cast<void *>(&out), 0, sizeof out);
    if (in != nullptr) {
        if (size < 8)
            return fail(DTRAIN_ERR_INVALID, "struct_size %u is not set (use DTRAIN_INIT)", size);
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

// Fills a caller's struct of results as far as it knows them.
template <class T> Status give(T *out, T all, const char *whose) {
    if (out == nullptr || out->struct_size < 8)
        return fail(DTRAIN_ERR_INVALID, "%s: stats is NULL or not initialised (DTRAIN_INIT)",
                    whose);
    all.struct_size = out->struct_size;
    std::memcpy(static_cast<void *>(out), &all,
                all.struct_size < sizeof all ? all.struct_size : sizeof all);
    return DTRAIN_OK;
}

} // namespace dtrain::api
