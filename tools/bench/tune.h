/* dtrain-bench tune: fits the cost model to the machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_TUNE_H
#define BENCH_TUNE_H

/* The verb with its arguments; returns the exit status. */
int tune_main(int argc, char **argv);

#endif
