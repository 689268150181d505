/* How far apart two CPUs are at the moment: one way of a cache line, in ns, and a name for it.
 * Usage: bench_probe [CPU CPU], their numbers among those that it may use; 0 and 1 by default.
 * SPDX-License-Identifier: Apache-2.0
 *
 * On virtual machines the host moves CPUs about, which changes every result below 1 MiB by up to a
 * factor of 4: results of different states do not compare. */
#include "line.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void pin(int index) { /* to the index-th of our CPUs */
    cpu_set_t ours, one;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof ours, &ours);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &ours) && index-- == 0) CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

int main(int argc, char **argv) {
    lines_t *lines = (lines_t *)mmap(NULL, sizeof *lines, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lines == MAP_FAILED) return perror("probe: mmap"), EXIT_FAILURE;
    cpu_set_t ours;
    if (sched_getaffinity(0, sizeof ours, &ours) != 0 || CPU_COUNT(&ours) < 2)
        return puts("one-cpu 0"), 0;
    const int first = argc > 2 ? atoi(argv[1]) : 0, second = argc > 2 ? atoi(argv[2]) : 1;
    const pid_t child = fork();
    if (child < 0) return perror("probe: fork"), EXIT_FAILURE;
    pin(child == 0 ? second : first);
    const double way = line_ns(lines, child != 0);
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
    printf("%s %.0f\n", line_state(way), way);
    return 0;
}
