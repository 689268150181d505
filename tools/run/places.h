/* Which process of the job is on which host.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_PLACES_H
#define RUN_PLACES_H
#include "host_list.h"

typedef struct place {
    int host;                   /* number in the list */
    int local_rank, local_size; /* workers only: among the workers of the host */
} place_t;

/* Fills places[workers + servers]. Workers fill the slots of the hosts in their order, and then
 * again from the first; servers, which need no slots, go round the hosts. */
void places_fill(const host_list_t *hosts, int workers, int servers, place_t *places);

#endif
