/* The start of processes: of all of a job, on hosts that are connected first, or of one newcomer.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_STARTING_H
#define RUN_STARTING_H
#include "job.h"

/* Finds out what all processes have in common, except where they meet. Returns 0, or -1 with the
 * reason on stderr and job->status set. */
int start_prepare(job_t *job);
/* Starts all processes of a job that is not elastic. After a failure, which it has printed,
 * job->status is the exit status, and those that run are to be stopped. */
void start_all(job_t *job);

/* For the hosts' connections: tells the agents from now on that the launcher lives. */
void start_heart(job_t *job);
/* Adds common.workers workers and the servers, on these hosts of the job: hosts->entries[i] is
 * job->hosts[numbers[i]]. */
void start_place(job_t *job, const host_list_t *hosts, const int *numbers);
/* Starts all that were added; failures are as above, but for lost hosts if the job is elastic. */
void start_processes(job_t *job);
/* Starts another worker on this host of an elastic job. */
void start_newcomer(job_t *job, place_t place, int formed);

#endif
