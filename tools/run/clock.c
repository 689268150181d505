/* Reads the clock.
 * SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"

#include <time.h>

double clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double clock_pause(double looked, double now) { return now - looked > 1.5 ? now - looked : 0; }
