/* The policy of an elastic job: when workers are started, replaced and told to go, and when the job
 * ends.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The first generation starts with the slots that are there, at least MIN. Until it has formed (the
 * file of the meeting says so), the failure of a process ends the others, and it starts again. From
 * then on a worker that fails is replaced by a newcomer, which waits until the others take it in,
 * and free slots get newcomers up to MAX. The first worker that ends with status 0 ends the job:
 * nothing is started any more, and newcomers that still wait are told to go. */
#ifndef RUN_ELASTIC_H
#define RUN_ELASTIC_H
#include "discovery.h"
#include "job.h"
#include "meeting.h"
#include "sites.h"

typedef struct elastic {
    sites_t sites; /* of job->hosts */
    discovery_t discovery;
    texts_t said; /* warnings, each of which is said once */
    meeting_t meeting;
    bool listed;     /* there is a list of hosts */
    bool begun;      /* the first generation was started */
    bool again;      /* it is to be started again, once its processes have ended */
    double again_at; /* when that is decided after a failure; or never */
    bool over;       /* nothing is started any more */
    int failed, replaced;
    int first_status;   /* of the first failure */
    double below_since; /* when fewer workers than MIN ran; never: there are enough */
    double leave_at;    /* not before, workers whose slots are gone are told to go */
    double finish_at;   /* when newcomers that wait for a job that ends are told to go; or never */
    double alone_since; /* when only newcomers were left, which nobody takes in; or never */
} elastic_t;

/* For job.c; all do nothing for a job that is not elastic. */
void elastic_open(job_t *job);
void elastic_prepare(const job_t *job, struct pollfd polled[DISCOVERY_POLLED]);
void elastic_handle(job_t *job, const struct pollfd polled[DISCOVERY_POLLED]);
/* Takes what another host's file of the meeting says. */
void elastic_meet(job_t *job, const char *text, size_t length);
/* A process has ended. True: that does not count as the job's failure. */
bool elastic_ended(job_t *job, const process_t *process);
void elastic_step(job_t *job); /* after each wait */
/* Whether processes may be started, also if none runs at the moment. */
bool elastic_goes_on(const job_t *job);
/* How many workers run that were not told to end; members: without newcomers that wait. */
int elastic_workers(const job_t *job, bool members);
void elastic_summarize(job_t *job);
void elastic_close(job_t *job);

#endif
