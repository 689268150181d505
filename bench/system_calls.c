/* SPDX-License-Identifier: Apache-2.0 */
#include "system_calls.h"

#include <dirent.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_THREADS = 64 };
static int counters[MOST_THREADS], threads;

static unsigned long long tracepoint(void) {
    unsigned long long id = 0;
    FILE *file = fopen("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id", "re");
    if (file == NULL) return 0;
    if (fscanf(file, "%llu", &id) != 1) id = 0;
    fclose(file);
    return id;
}

void system_calls_begin(void) {
    struct perf_event_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.type = PERF_TYPE_TRACEPOINT;
    attributes.size = sizeof attributes;
    attributes.config = tracepoint();
    attributes.inherit = 1;
    DIR *tasks = attributes.config != 0 ? opendir("/proc/self/task") : NULL;
    if (tasks == NULL) return;
    for (struct dirent *task; (task = readdir(tasks)) != NULL && threads < MOST_THREADS;) {
        const pid_t thread = atoi(task->d_name);
        if (thread == 0) continue; /* . and .. */
        counters[threads] =
            (int)syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (counters[threads] >= 0) threads++;
    }
    closedir(tasks);
}

long system_calls_now(void) {
    long sum = 0;
    for (int i = 0; i < threads; i++) {
        uint64_t count = 0;
        if (read(counters[i], &count, sizeof count) != sizeof count) return -1;
        sum += (long)count;
    }
    return threads > 0 ? sum : -1;
}
