/* The processes that an elastic job starts: its first generation, and newcomers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_ELASTIC_STARTS_H
#define RUN_ELASTIC_STARTS_H
#include "elastic.h"

/* Starts the first generation on the hosts that can take workers now, if they have MIN slots.
 * False: a host was lost meanwhile, and some processes are not started. */
bool elastic_begin(job_t *job, double now);
/* Starts newcomers in free slots, while there are workers that can take them in. */
void elastic_grow(job_t *job, double now);

#endif
