/* The hosts of an elastic job: the newest list, their connections, and what is on them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_ELASTIC_HOSTS_H
#define RUN_ELASTIC_HOSTS_H
#include "elastic.h"

/* Takes the newest list of hosts. */
void elastic_list_hosts(job_t *job, const host_list_t *hosts);
/* Connects to hosts that are needed, gives them what processes need, and leaves the others. */
void elastic_tend_hosts(job_t *job, double now);
/* Counts what is on them, for sites.h. */
void elastic_count(job_t *job);
/* Whether it is not known yet of a host if processes can be started there. */
bool elastic_connecting(const job_t *job);
/* Something that was started at this time on host i has failed. */
void elastic_blame(job_t *job, int i, double started);
/* Gives all hosts what this one's file of the meeting says. */
void elastic_tell_place(job_t *job);

#endif
