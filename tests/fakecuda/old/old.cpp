// A driver from before CUDA 12.1: it lacks the words of streams, and most else.
// SPDX-License-Identifier: Apache-2.0
#define FAKE_API extern "C" __attribute__((visibility("default")))

FAKE_API int cuInit(unsigned) { return 0; }
FAKE_API int cuDriverGetVersion(int *version) {
    *version = 10020;
    return 0;
}
