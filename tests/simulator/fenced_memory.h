// Memory in which every access to a freed piece, or behind its end, ends the process.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

namespace dtrain::simulator {

// Each piece ends at the end of a page behind which there is nothing, and its addresses are not
// used again. Lives take several times as long, so it is used if DTRAIN_SIMULATOR_FENCES=1.
class FencedMemory {
  public:
    // nullptr: not used, or the piece is too large or too strangely aligned; libc has it then.
    static void *take(size_t bytes, size_t border = 16);
    static bool owns(const void *piece);
    static size_t bytes_of(const void *piece);
    static void release(void *piece);
};

} // namespace dtrain::simulator
