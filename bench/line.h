/* How long a cache line takes between two processes at the moment.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_LINE_H
#define BENCH_LINE_H
#ifdef __cplusplus
extern "C" {
#endif

/* In memory that both processes map; zeroed at first. */
typedef struct lines {
    unsigned ping, ping_alone[31];
    unsigned pong, pong_alone[31];
} lines_t;

/* One way of a line in ns: the median of 31 probes, some 2 ms. Both processes call it, on CPUs of
 * their own; one of them `begins`, and only it gets the time. 0: the other one did not answer
 * within 100 ms. */
double line_ns(lines_t *lines, int begins);

/* What that is called: shared (by one core), near, FAR, or mixed. */
const char *line_state(double ns);

#ifdef __cplusplus
}
#endif
#endif
