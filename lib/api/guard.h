// The exception wall and the rule for growing parameter structs.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

#include <cstring>
#include <exception>
#include <new>

namespace dtrain::api {

// Runs a call's body; an exception (the standard library's: our code throws none) becomes a status.
template <class F> Status guard(F &&body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc &) {
        return fail(DTRAIN_ERR_NO_MEMORY, "out of memory");
    } catch (const std::exception &e) {
        return fail(DTRAIN_ERR_INTERNAL, "%s", e.what());
    } catch (...) {
        return fail(DTRAIN_ERR_INTERNAL, "unknown exception");
    }
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
