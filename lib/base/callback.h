// Calls functions of the program, which must not throw but might.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <cxxabi.h>
#include <exception>

namespace dtrain {

// What a callback threw, as text for messages: "an exception (no such file)".
struct Thrown {
    char text[160] = "";
};

// For a catch-all handler: whether it has caught the end of a thread (pthread_exit), which must be
// rethrown. (A handler of abi::__forced_unwind would bind a reference to nothing, says UBSan.)
inline bool caught_end_of_thread() { return abi::__cxa_current_exception_type() == nullptr; }

// Runs call(). Returns false if it threw; the exception ends here, except for the end of a thread,
// which is rethrown.
template <class F> bool returns(F &&call, Thrown &thrown) {
    try {
        call();
        return true;
    } catch (const std::exception &e) {
        std::snprintf(thrown.text, sizeof thrown.text, "an exception (%s)", e.what());
    } catch (...) {
        if (caught_end_of_thread()) throw;
        std::snprintf(thrown.text, sizeof thrown.text, "an exception");
    }
    return false;
}

} // namespace dtrain
