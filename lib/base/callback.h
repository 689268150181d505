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

// Of a handler of everything: whether it has caught the end of a thread (pthread_exit), which must
// go on. (A handler of abi::__forced_unwind binds a reference to nothing, says UBSan.)
inline bool caught_end_of_thread() { return abi::__cxa_current_exception_type() == nullptr; }

// Runs call(); false: it has thrown, which ends here. The end of a thread goes on.
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
