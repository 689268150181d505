/* Resident memory of a job of one worker and one server that dtrain-run has started.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_RESIDENT_H
#define BENCH_RESIDENT_H
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* This process's sibling. */
static inline pid_t server_pid(void) {
    char path[64];
    int pid = 0, found = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", getppid(), getppid());
    FILE *file = fopen(path, "re");
    while (file != NULL && fscanf(file, "%d", &pid) == 1)
        if (pid != getpid()) found = pid;
    if (file != NULL) fclose(file);
    if (found == 0) {
        fprintf(stderr, "no server beside this process: run it by dtrain-run -n 1 -s 1\n");
        exit(EXIT_FAILURE);
    }
    return found;
}

static inline long resident_kib(pid_t pid) {
    char path[64];
    long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) >> 10);
}

#endif
