/* Connects an elastic job's hosts while it runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "elastic_hosts.h"

#include "clock.h"
#include "local_name.h"
#include "starting.h"

#include <string.h>

void elastic_list_hosts(job_t *job, const host_list_t *hosts) {
    sites_t *sites = &job->elastic->sites;
    sites_update(sites, hosts);
    while (job->host_count < sites->count) job_add_host(job);
    for (int i = 0; i < sites->count; i++) {
        site_t *site = &sites->list[i];
        if (site->known || site->slots == 0) continue;
        site->local = is_local_name(site->name);
        site->known = true;
    }
}

static bool is_up(const site_t *site, const host_t *host) {
    return site->local || (host->state == HOST_READY && host->equipped && !host->finishing);
}

void elastic_count(job_t *job) {
    sites_t *sites = &job->elastic->sites;
    for (int i = 0; i < sites->count; i++) {
        site_t *site = &sites->list[i];
        site->used = 0;
        site->serves = false;
        site->busy = job->hosts[i]->state != HOST_UNUSED;
        site->up = is_up(site, job->hosts[i]);
    }
    for (int i = 0; i < job->count; i++) {
        site_t *site = &sites->list[job->processes[i]->place.host];
        site->busy = true;
        if (job->processes[i]->server)
            site->serves = true;
        else
            site->used++;
    }
}

bool elastic_connecting(const job_t *job) {
    for (int i = 0; i < job->host_count; i++)
        if (job->hosts[i]->state == HOST_CONNECTING) return true;
    return false;
}

void elastic_blame(job_t *job, int i, double started) {
    site_t *site = &job->elastic->sites.list[i];
    if (!site_failed(site, started, clock_now())) return;
    output_say("host %s is left out from now on: %d failures in a row, each soon after a start",
               site->name, site->failures);
}

void elastic_tell_place(job_t *job) {
    const meeting_t *meeting = &job->elastic->meeting;
    for (int i = 0; i < job->host_count; i++)
        if (job->hosts[i]->state == HOST_READY && job->hosts[i]->equipped)
            host_place(job->hosts[i], meeting->text, meeting->length);
}

static void equip(job_t *job, host_t *host) {
    const meeting_t *meeting = &job->elastic->meeting;
    if (job->common.secret[0] != 0) host_send_secret(host, job->common.secret);
    host_meet(host);
    if (meeting->length > 0) host_place(host, meeting->text, meeting->length);
    host->equipped = true;
}

static void leave(host_t *host) {
    if (host->state == HOST_READY && !host->finishing) host_finish(host);
    if (host->state == HOST_CONNECTING || host->state == HOST_ENDED) {
        host_close(host);
        host->state = HOST_UNUSED;
    }
}

/* True: it is connected now, or will be. */
static bool tend(job_t *job, int i, double now) {
    host_t *host = job->hosts[i];
    site_t *site = &job->elastic->sites.list[i];
    const bool wanted = site->slots > 0 && !site->left_out && !site->local;
    if (host->state == HOST_LOST && host->reported) {
        if (job->elastic->first_status == 0) job->elastic->first_status = 255;
        elastic_blame(job, i, host->opened);
        host->state = HOST_UNUSED;
    }
    if (!wanted && site->used == 0 && !site->serves) leave(host);
    if (host->state == HOST_ENDED) leave(host);
    if (host->state == HOST_READY && !host->equipped) equip(job, host);
    if (!wanted || host->state != HOST_UNUSED || now < site->retry_at) return false;
    host_open(host, site->name, job->options, now);
    return true;
}

void elastic_tend_hosts(job_t *job, double now) {
    bool opened = false;
    elastic_count(job);
    for (int i = 0; i < job->host_count; i++) opened |= tend(job, i, now);
    if (opened) start_heart(job);
    elastic_count(job);
}
