/* SPDX-License-Identifier: Apache-2.0 */
#include "usage.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double seconds(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

static double machine(void) {
    unsigned long long user, nice, system, idle, wait, irq, soft_irq, steal;
    FILE *file = fopen("/proc/stat", "re");
    if (file == NULL) return 0;
    const int n = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
                         &idle, &wait, &irq, &soft_irq, &steal);
    fclose(file);
    if (n != 8) return 0;
    return (double)(user + nice + system + irq + soft_irq + steal) / (double)sysconf(_SC_CLK_TCK);
}

usage_t usage_now(void) {
    struct rusage own;
    getrusage(RUSAGE_SELF, &own);
    const usage_t usage = {seconds(own.ru_utime) + seconds(own.ru_stime), machine(), own.ru_maxrss};
    return usage;
}
