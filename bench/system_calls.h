/* Counts the system calls of this process, all its threads, through the kernel's tracepoint.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SYSTEM_CALLS_H
#define BENCH_SYSTEM_CALLS_H

/* Of the threads that exist, and those that they start. Needs root and a mounted tracefs. */
void system_calls_begin(void);
long system_calls_now(void); /* since then, its own few included; -1: they cannot be counted here */

#endif
