/* Fills slots with workers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "elastic_starts.h"

#include "elastic_hosts.h"
#include "starting.h"

#include <stdlib.h>

static bool are_started(const job_t *job) {
    for (int i = 0; i < job->count; i++)
        if (!job->processes[i]->started) return false;
    return true;
}

bool elastic_begin(job_t *job, double now) {
    elastic_t *e = job->elastic;
    const options_t *o = job->options;
    const size_t most = (size_t)e->sites.count;
    host_list_t hosts = {.entries = own_memory(NULL, most * sizeof *hosts.entries)};
    int *numbers = own_memory(NULL, most * sizeof *numbers);
    for (int i = 0; i < e->sites.count; i++) {
        const int room = site_room(&e->sites.list[i], now);
        if (room == 0) continue;
        numbers[hosts.count] = i;
        hosts.entries[hosts.count++] = (host_entry_t){e->sites.list[i].name, room};
        hosts.slots += room;
    }
    if (hosts.slots >= o->elastic_min) {
        const int wanted = o->workers > 0 ? o->workers : o->elastic_max;
        job->common.workers = job->next_worker = wanted < hosts.slots ? wanted : hosts.slots;
        e->begun = true;
        start_place(job, &hosts, numbers);
        start_processes(job);
    }
    free(hosts.entries);
    free(numbers);
    return are_started(job);
}

/* The lowest slot of the host that has no worker. */
static place_t free_place(const job_t *job, int host) {
    place_t place = {.host = host};
    int workers = 1;
    for (bool taken = true; taken; place.local_rank += taken) {
        taken = false;
        for (int i = 0; i < job->count; i++) {
            const process_t *p = job->processes[i];
            if (p->server || p->place.host != host) continue;
            taken |= p->place.local_rank == place.local_rank;
        }
    }
    for (int i = 0; i < job->count; i++)
        workers += !job->processes[i]->server && job->processes[i]->place.host == host;
    place.local_size = workers > place.local_rank ? workers : place.local_rank + 1;
    return place;
}

void elastic_grow(job_t *job, double now) {
    elastic_t *e = job->elastic;
    if (e->meeting.formed == 0 || elastic_workers(job, true) == 0) return;
    for (int workers = elastic_workers(job, false); workers < job->options->elastic_max;
         workers++) {
        const int host = sites_choose(&e->sites, now);
        if (host < 0) return;
        start_newcomer(job, free_place(job, host), e->meeting.formed);
        if (e->replaced < e->failed) e->replaced++;
        elastic_count(job);
    }
}
