/* The hosts of an elastic job: their slots, and which of them may take another worker.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A host on which a worker fails soon after its start waits before it takes another: 1, 2, 4, ...
 * seconds, at most a minute. After several such failures in a row it is left out. Failures of
 * workers that were started together count once, and a worker that has run for a while ends the
 * row.
 *
 * No I/O and no clock, so that a test can drive it. */
#ifndef RUN_SITES_H
#define RUN_SITES_H
#include "host_list.h"

#include <stdbool.h>

enum { SITE_FAILURES = 5 }; /* in a row, until a host is left out */

typedef struct site {
    char *name;
    int slots;         /* in the newest list of hosts; 0: it is not there any more */
    bool local, known; /* known: `local` (this machine) has been found out */
    bool up;           /* processes can be started there now */
    int used;          /* slots that have a process, also one that was told to end */
    bool serves;       /* it has a server */
    bool busy;         /* it has processes or a connection: the entry must stay */
    int failures;      /* in a row */
    double failed_at;  /* the last one */
    double retry_at;   /* no worker is started there before */
    bool left_out;
} site_t;

typedef struct sites {
    site_t *list; /* an entry keeps its number while it is listed or busy */
    int count;
} sites_t;

/* Takes the newest list. A host that was not in the list before it begins anew. */
void sites_update(sites_t *sites, const host_list_t *hosts);
/* Something that was started there at this time has failed. True: the host is left out from now
 * on. */
bool site_failed(site_t *site, double started, double now);
/* How many workers more could be started there now, and later. */
int site_room(const site_t *site, double now);
int site_prospect(const site_t *site);
/* The first host that can take a worker now; -1: none. */
int sites_choose(const sites_t *sites, double now);
void sites_free(sites_t *sites);

#endif
