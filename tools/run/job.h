/* Runs all processes of the job, from their start to their end.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_JOB_H
#define RUN_JOB_H
#include "input.h"
#include "options.h"
#include "process.h"

#include <poll.h>

typedef struct job {
    const options_t *options;
    process_t *processes;  /* workers, then servers */
    struct pollfd *polled; /* signals, two for the input, two per process, then the hosts' */
    host_t *hosts;         /* those of the options, of which some are this one or unused */
    int host_count;
    bool connected; /* a loss of a host is from now on a loss of its processes */
    pid_t heart;
    input_t input;
    int signals;
    int count, running, workers_running;
    bool some_ended; /* a process has ended, and the job has perhaps not handled it yet */
    int status;      /* exit status of the first process to fail */
    int interrupted; /* the first signal passed on, or 0 */
    bool stopping;   /* TERM was sent */
    double deadline; /* --timeout */
    double stop_at;  /* when the grace time after a failure is over */
    double kill_at;  /* when KILL follows */
    double looked;   /* at the clock, for hosts */
} job_t;

/* Runs the job; returns the launcher's exit status. */
int job_run(const options_t *options);

/* For starting.h: waits for the next event, at most half a second while there are hosts, and
 * handles it, except for ends of processes, which the job's policy handles. */
void job_wait(job_t *job);

#endif
