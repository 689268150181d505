// How much of its grid a proof goes through.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>

// With DTRAIN_TEST_ALL set: all of it, which takes minutes (the tests labelled long).
inline bool is_thorough() {
    static const bool is_set = std::getenv("DTRAIN_TEST_ALL") != nullptr;
    return is_set;
}
