// Random tests under a sanitizer, where each takes up to ten times as long.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::test {

// How often to repeat what is repeated so often without one: a sanitizer watches what the program
// does, and a fifth does nearly all of it.
constexpr uint64_t repeats(uint64_t usual) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return usual / 5;
#else
    return usual;
#endif
}

} // namespace dtrain::test
