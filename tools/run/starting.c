/* Connects to the hosts, then starts the processes in reverse order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "starting.h"

#include "clock.h"
#include "heart.h"
#include "local_name.h"
#include "rendezvous.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOST_STATUS = 255 };

static int failed(job_t *job, const char *what) {
    output_say("%s: %s", what, strerror(errno));
    job->status = 1;
    return -1;
}

int start_prepare(job_t *job) {
    common_t *common = &job->common;
    common->listener = -1;
    common->workers = job->options->workers;
    common->directory = get_current_dir_name();
    if (common->directory == NULL && (job->host_count > 0 || job->elastic != NULL))
        return failed(job, "the current folder");
    if (secret_make(common->secret) != 0) return job->status = 1, -1;
    if (common->secret[0] != 0 && secret_store(common->secret, common->secret_path) != 0)
        return failed(job, "cannot store the secret");
    return 0;
}

void start_place(job_t *job, const host_list_t *hosts, const int *numbers) {
    const int workers = job->common.workers, servers = job->options->servers;
    place_t *places = own_memory(NULL, (size_t)(workers + servers) * sizeof *places);
    places_fill(hosts, workers, servers, places);
    for (int i = 0; i < workers + servers; i++) {
        process_t *p = job_add(job);
        p->server = i >= workers;
        p->index = p->server ? i - workers : i;
        p->kind = p->server ? "server" : job->elastic != NULL ? "worker" : "rank";
        p->place = places[i];
        if (numbers != NULL) p->place.host = numbers[p->place.host];
    }
    free(places);
}

static void place_all(job_t *job) {
    host_entry_t this_one = {.name = "localhost", .slots = MAX_SLOTS};
    const host_list_t only = {.entries = &this_one, .count = 1, .slots = MAX_SLOTS};
    start_place(job, job->options->hosts.count > 0 ? &job->options->hosts : &only, NULL);
}

static bool is_used(const job_t *job, int host) {
    for (int i = 0; i < job->count; i++)
        if (job->processes[i]->place.host == host) return true;
    return false;
}

/* NULL: this one. */
static host_t *host_of(const job_t *job, const process_t *p) {
    host_t *host = job->host_count > 0 ? job->hosts[p->place.host] : NULL;
    return host != NULL && host->state != HOST_UNUSED ? host : NULL;
}

void start_heart(job_t *job) {
    int *fds = own_memory(NULL, (size_t)job->host_count * sizeof *fds);
    heart_stop(job->heart);
    for (int i = 0; i < job->host_count; i++) {
        const host_t *host = job->hosts[i];
        const bool open = host->state == HOST_CONNECTING || host->state == HOST_READY;
        fds[i] = open ? host->channel.to : -1;
    }
    job->heart = heart_start(fds, job->host_count);
    free(fds);
}

/* Returns how many hosts the job is on. */
static int open_hosts(job_t *job) {
    const host_list_t *list = &job->options->hosts;
    int used = 0, remote = 0;
    for (int i = 0; i < list->count; i++) {
        if (!is_used(job, i)) continue;
        used++;
        if (is_local_name(list->entries[i].name)) continue;
        host_open(job->hosts[i], list->entries[i].name, job->options, clock_now());
        remote++;
    }
    for (int i = 0; i < job->count; i++) job->processes[i]->host = host_of(job, job->processes[i]);
    if (remote > 0) start_heart(job);
    return list->count > 0 ? used : 1;
}

/* Whether it is known of each host if processes can be started there, and the user was told. */
static bool are_settled(const job_t *job) {
    for (int i = 0; i < job->host_count; i++) {
        const host_t *host = job->hosts[i];
        if (host->state == HOST_CONNECTING || (host->state == HOST_LOST && !host->reported))
            return false;
    }
    return true;
}

static void connect_hosts(job_t *job) {
    while (!are_settled(job) && job->interrupted == 0) job_wait(job);
    for (int i = 0; i < job->host_count; i++)
        if (job->hosts[i]->state == HOST_LOST) job->status = LOST_STATUS;
}

/* This machine's address, as another host has seen it. */
static const char *own_address(const job_t *job) {
    static char name[256];
    for (int i = 0; i < job->host_count; i++)
        if (job->hosts[i]->launcher[0] != 0) return job->hosts[i]->launcher;
    return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

static const char *address_of(const host_t *host) {
    const char *at = strrchr(host->name, '@');
    return host->address[0] != 0 ? host->address : at != NULL ? at + 1 : host->name;
}

/* Rank 0's host listens, at a port that it chooses; the others reach it by the address by which ssh
 * has reached it. */
static int open_meeting(job_t *job, bool several) {
    common_t *common = &job->common;
    host_t *first = job->processes[0]->host;
    const char *address = job->options->address;
    int port = 0;
    if (first == NULL) {
        common->listener = rendezvous_listen(several, &port);
        if (common->listener < 0) return failed(job, "cannot listen for the ranks");
        if (address == NULL) address = several ? own_address(job) : "127.0.0.1";
    } else {
        host_listen(first, several);
        while (first->state == HOST_READY && first->port == 0 && job->interrupted == 0)
            job_wait(job);
        if (first->state == HOST_LOST) job->status = LOST_STATUS;
        if (first->port == 0) return -1;
        port = first->port;
        if (address == NULL) address = several ? address_of(first) : "127.0.0.1";
    }
    rendezvous_url(address, port, common->url, sizeof common->url);
    for (int i = 0; i < job->host_count && common->secret[0] != 0; i++)
        if (job->hosts[i]->state == HOST_READY) host_send_secret(job->hosts[i], common->secret);
    return 0;
}

/* How many processes start at the same time: one by one, each would first wait for a core. */
enum { starting_together = 16 };

/* Confirms the processes that were started before process i, except the last `but` of them. */
static void confirm(job_t *job, int *unconfirmed, int i, int but) {
    for (; *unconfirmed > i + but; (*unconfirmed)--) {
        process_t *p = job->processes[*unconfirmed];
        while (p->host != NULL && p->host->state == HOST_READY && !p->confirmed) job_wait(job);
        if (p->host == NULL) process_confirm(p);
        if (p->failure.step != FAILED_NOTHING) {
            if (job->status == 0) job->status = process_failed(p);
            p->handled = true;
            job->running--;
            job->workers_running -= !p->server;
        } else if (p->lost && job->status == 0 && job->elastic == NULL) {
            job->status = LOST_STATUS;
        }
        recipe_free(&p->recipe);
    }
}

/* The descriptor of its input; -1: that of the launcher, or another host's. */
static int open_input(job_t *job, const process_t *p) {
    int input = -1;
    if (p->server || p->newcomer || p->index > 0)
        return p->host == NULL ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    input_close(&job->input);
    if (p->host != NULL)
        input_open_at(&job->input, p->host, p->number);
    else if (input_open(&job->input, &input) != 0)
        input = -1;
    return input;
}

static void start_one(job_t *job, process_t *p) {
    const bool listens = job->elastic == NULL && !p->server && p->index == 0;
    recipe_write(p, job->options, &job->common);
    process_start(p, open_input(job, p), listens, listens ? job->common.listener : -1);
    job->running++;
    job->workers_running += !p->server;
}

/* If a server's program is missing, for example, no worker starts. */
void start_processes(job_t *job) {
    int i = job->count - 1, unconfirmed = i;
    for (; i >= 0; i--) {
        process_t *p = job->processes[i];
        confirm(job, &unconfirmed, i, i == job->common.workers - 1 ? 0 : starting_together);
        if (job->status != 0 || job->interrupted != 0) break;
        p->host = host_of(job, p);
        if (p->host != NULL && p->host->state != HOST_READY) {
            if (job->elastic == NULL) job->status = LOST_STATUS; /* the job has said so */
            break;
        }
        start_one(job, p);
    }
    confirm(job, &unconfirmed, i, 0);
}

void start_newcomer(job_t *job, place_t place, int formed) {
    process_t *p = job_add(job);
    p->newcomer = true;
    p->index = job->next_worker++;
    p->kind = "worker";
    p->place = place;
    p->formed = formed;
    p->host = host_of(job, p);
    start_one(job, p);
    if (p->host == NULL) process_confirm(p);
}

void start_all(job_t *job) {
    if (start_prepare(job) != 0) return;
    place_all(job);
    const bool several = open_hosts(job) > 1;
    connect_hosts(job);
    if (job->status == 0 && job->interrupted == 0 && open_meeting(job, several) == 0)
        start_processes(job);
    if (job->common.listener >= 0) close(job->common.listener); /* rank 0 has inherited it */
    if (job->status == 0 && job->interrupted != 0 && !job->processes[0]->started)
        job->status = 128 + job->interrupted;
}
