/* What this process and the whole machine have used.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_USAGE_H
#define BENCH_USAGE_H

typedef struct usage {
    double own,
        machine;   /* seconds of CPU, of all CPUs together; a hypervisor's theft is use, too */
    long peak_kib; /* the most that was resident so far; of shared pages this process's part */
} usage_t;

usage_t usage_now(void);

#endif
