/* The start of a job: connections to its hosts, the place where its ranks meet, its processes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_STARTING_H
#define RUN_STARTING_H
#include "job.h"

/* Starts all processes. After a failure, which it has printed, job->status is the exit status, and
 * those that run are to be stopped. */
void start_all(job_t *job);

#endif
