/* Runs all processes of the job, from their start to their end.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_JOB_H
#define RUN_JOB_H
#include "input.h"
#include "options.h"
#include "process.h"
#include "recipes.h"

#include <poll.h>

typedef struct job {
    const options_t *options;
    common_t common;
    struct elastic *elastic; /* elastic.h; NULL: the job is not elastic */
    process_t **processes;   /* workers, then servers, then newcomers: their numbers ascend */
    int count, next_number;
    int next_worker;       /* number of the next newcomer */
    struct pollfd *polled; /* signals, two for the input, three for the script of --discovery, two
                              per process, then the hosts' */
    host_t **hosts;        /* those of the options or of elastic.h, of which some are this one */
    int host_count;
    pid_t heart;
    input_t input;
    int signals;
    int running, workers_running;
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

/* For starting.h and elastic.h. */
/* Waits for the next event, at most half a second while there are hosts, and handles it, except for
 * ends of processes, which the job's policy handles. */
void job_wait(job_t *job);
process_t *job_add(job_t *job); /* a process that is not started yet */
void job_add_host(job_t *job);  /* a host that is not connected */
void job_stop(job_t *job);      /* TERM for all, and KILL some time later */

#endif
