/* Time in seconds, and how long this process itself did not run.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_CLOCK_H
#define RUN_CLOCK_H

double clock_now(void);
/* For loops that look at the clock at least twice a second: what of the time since they last looked
 * they were stopped or blocked. Others were not silent then; nobody listened. */
double clock_pause(double looked, double now);

#endif
