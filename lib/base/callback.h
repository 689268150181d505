// Calling functions of the program's, which must not throw, but do.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <cxxabi.h>
#include <exception>

namespace dtrain {

// What a callback threw, for texts: "an exception (no such file)".
struct Thrown {
    char text[160] = "";
};

// Of functions that catch the end of a thread: there is no object behind that reference.
#define DTRAIN_CATCHES_ENDS __attribute__((no_sanitize("null")))

// Runs call(); false: it has thrown, which ends here. The end of a thread (pthread_exit) goes on.
template <class F> DTRAIN_CATCHES_ENDS bool returns(F &&call, Thrown &thrown) {
    try {
        call();
        return true;
    } catch (const std::exception &e) {
        std::snprintf(thrown.text, sizeof thrown.text, "an exception (%s)", e.what());
    } catch (const abi::__forced_unwind &) {
        throw;
    } catch (...) {
        std::snprintf(thrown.text, sizeof thrown.text, "an exception");
    }
    return false;
}

} // namespace dtrain
