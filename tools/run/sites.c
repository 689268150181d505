/* Updates the list of hosts, counts their failures, and chooses among them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sites.h"

#include "texts.h"

#include <stdlib.h>
#include <string.h>

static const double settled =
    60; /* seconds after which a worker's failure is not one of its start */
static const double longest_wait = 60; /* seconds */

static site_t *find(sites_t *sites, const char *name) {
    for (int i = 0; i < sites->count; i++)
        if (strcmp(sites->list[i].name, name) == 0) return &sites->list[i];
    return NULL;
}

/* An entry that nobody needs any more, or a new one. */
static site_t *unused(sites_t *sites) {
    for (int i = 0; i < sites->count; i++)
        if (sites->list[i].slots == 0 && !sites->list[i].busy) return &sites->list[i];
    sites->list = own_memory(sites->list, (size_t)(sites->count + 1) * sizeof *sites->list);
    sites->list[sites->count] = (site_t){0};
    return &sites->list[sites->count++];
}

static void begin(site_t *site, const char *name) {
    char *copy = strcpy(own_memory(NULL, strlen(name) + 1), name);
    const bool busy = site->busy;
    free(site->name);
    *site = (site_t){.name = copy, .busy = busy};
}

void sites_update(sites_t *sites, const host_list_t *hosts) {
    const size_t count = (size_t)sites->count;
    int *before = own_memory(NULL, count * sizeof *before);
    for (size_t i = 0; i < count; i++) {
        before[i] = sites->list[i].slots;
        sites->list[i].slots = 0;
    }
    for (int i = 0; i < hosts->count; i++) {
        site_t *site = find(sites, hosts->entries[i].name);
        if (site != NULL) site->slots = hosts->entries[i].slots;
        if (site != NULL && before[site - sites->list] == 0) {
            site->failures = 0;
            site->left_out = false;
            site->retry_at = 0;
        }
    }
    free(before);
    for (int i = 0; i < hosts->count; i++) { /* now it is known which entries are unused */
        if (find(sites, hosts->entries[i].name) != NULL) continue;
        site_t *site = unused(sites);
        begin(site, hosts->entries[i].name);
        site->slots = hosts->entries[i].slots;
    }
}

bool site_failed(site_t *site, double started, double now) {
    if (started < site->failed_at) return false; /* counted with those that were started with it */
    site->failed_at = now;
    if (now - started >= settled) {
        site->failures = 0;
        return false;
    }
    double wait = 1;
    for (int i = 0; i < site->failures && wait < longest_wait; i++) wait *= 2;
    site->retry_at = now + (wait < longest_wait ? wait : longest_wait);
    site->left_out = ++site->failures >= SITE_FAILURES;
    return site->left_out;
}

int site_prospect(const site_t *site) {
    return site->left_out || site->slots <= site->used ? 0 : site->slots - site->used;
}

int site_room(const site_t *site, double now) {
    return site->up && now >= site->retry_at ? site_prospect(site) : 0;
}

int sites_choose(const sites_t *sites, double now) {
    for (int i = 0; i < sites->count; i++)
        if (site_room(&sites->list[i], now) > 0) return i;
    return -1;
}

void sites_free(sites_t *sites) {
    for (int i = 0; i < sites->count; i++) free(sites->list[i].name);
    free(sites->list);
    *sites = (sites_t){0};
}
