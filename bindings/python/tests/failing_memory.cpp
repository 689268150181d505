// Preloaded by test_no_memory.py, which reaches the functions by ctypes.
// SPDX-License-Identifier: Apache-2.0
#pragma GCC visibility push(default)
#include "contract/failing_memory.h"

extern "C" {
void failing_memory_begin(int64_t first, int64_t last) { failing_memory::begin(first, last); }
int64_t failing_memory_end() { // how many allocations there were
    failing_memory::end();
    return failing_memory::calls;
}
}
