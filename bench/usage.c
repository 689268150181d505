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

/* Of the resident pages, those parts that other processes use as well. */
static long others_share_kib(void) {
    char line[128];
    long rss = 0, pss = 0, anonymous;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    if (file == NULL) return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "Rss: %ld", &rss) == 1) continue;
        if (sscanf(line, "Pss: %ld", &pss) == 1) continue;
        if (sscanf(line, "Pss_Anon: %ld", &anonymous) == 1) break;
    }
    fclose(file);
    return rss - pss;
}

usage_t usage_now(void) {
    struct rusage own;
    getrusage(RUSAGE_SELF, &own);
    const usage_t usage = {seconds(own.ru_utime) + seconds(own.ru_stime), machine(),
                           own.ru_maxrss - others_share_kib()};
    return usage;
}
