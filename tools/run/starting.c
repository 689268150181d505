/* Connects to the hosts, then starts the processes in reverse order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "starting.h"

#include "clock.h"
#include "heart.h"
#include "local_name.h"
#include "rendezvous.h"
#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static const double connecting_patience = 60; /* seconds for ssh and the shell on the other host */
enum { LOST_STATUS = 255 };

/* What all processes of the job have in common. */
typedef struct meeting {
    int listener; /* for rank 0, if it is here; else -1 */
    char url[400];
    char *directory; /* of this process, and so of those on other hosts */
    char secret[SECRET_LENGTH + 1];
    char secret_path[SECRET_PATH]; /* on this host; empty: the environment has a secret */
} meeting_t;

static void place_all(job_t *job) {
    const options_t *o = job->options;
    host_entry_t this_one = {.name = "localhost", .slots = MAX_SLOTS};
    const host_list_t only = {.entries = &this_one, .count = 1, .slots = MAX_SLOTS};
    const size_t bytes = (size_t)job->count * sizeof(place_t);
    place_t *places = own_memory(NULL, bytes);
    places_fill(o->hosts.count > 0 ? &o->hosts : &only, o->workers, o->servers, places);
    for (int i = 0; i < job->count; i++) {
        process_t *p = &job->processes[i];
        p->number = i;
        p->server = i >= o->workers;
        p->index = p->server ? i - o->workers : i;
        p->place = places[i];
    }
    free(places);
}

/* Of the processes on host i. */
static process_t *any_of(job_t *job, int host) {
    for (int i = 0; i < job->count; i++)
        if (job->processes[i].place.host == host) return &job->processes[i];
    return NULL;
}

/* Returns how many hosts the job is on. */
static int open_hosts(job_t *job) {
    const host_list_t *list = &job->options->hosts;
    int used = 0, remote = 0, *fds = own_memory(NULL, (size_t)list->count * sizeof *fds);
    for (int i = 0; i < list->count; i++) {
        fds[i] = -1;
        if (any_of(job, i) == NULL) continue;
        used++;
        if (is_local_name(list->entries[i].name)) continue;
        host_open(&job->hosts[i], list->entries[i].name, job->options, clock_now());
        fds[i] = job->hosts[i].channel.to;
        remote++;
    }
    for (int i = 0; i < job->count; i++) {
        process_t *p = &job->processes[i];
        const bool there = list->count > 0 && job->hosts[p->place.host].state != HOST_UNUSED;
        p->host = there ? &job->hosts[p->place.host] : NULL;
    }
    if (remote > 0) job->heart = heart_start(fds, list->count);
    free(fds);
    return list->count > 0 ? used : 1;
}

static bool is_any(const job_t *job, host_state_t state) {
    for (int i = 0; i < job->host_count; i++)
        if (job->hosts[i].state == state) return true;
    return false;
}

static void connect_hosts(job_t *job) {
    const double begin = clock_now(), end = begin + connecting_patience;
    while (is_any(job, HOST_CONNECTING) && job->interrupted == 0 && clock_now() < end)
        job_wait(job);
    for (int i = 0; i < job->host_count; i++) {
        host_t *host = &job->hosts[i];
        if (host->state == HOST_CONNECTING && job->interrupted == 0)
            host_lose(host, "no answer within 60 s");
        if (host->state != HOST_LOST) continue;
        host->reported = true;
        job->status = LOST_STATUS;
        output_say("cannot start processes on host %s: %s", host->name, host->why);
    }
    job->connected = true;
}

static int failed(job_t *job, const char *what) {
    output_say("%s: %s", what, strerror(errno));
    job->status = 1;
    return -1;
}

/* This machine's address, as another host has seen it. */
static const char *own_address(const job_t *job) {
    static char name[256];
    for (int i = 0; i < job->host_count; i++)
        if (job->hosts[i].launcher[0] != 0) return job->hosts[i].launcher;
    return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

static const char *address_of(const host_t *host) {
    const char *at = strrchr(host->name, '@');
    return host->address[0] != 0 ? host->address : at != NULL ? at + 1 : host->name;
}

/* Rank 0's host listens, at a port that it chooses; the others reach it by the address by which ssh
 * has reached it. */
static int open_meeting(job_t *job, meeting_t *meeting, bool several) {
    host_t *first = job->processes[0].host;
    const char *address = job->options->address;
    int port = 0;
    if (first == NULL) {
        meeting->listener = rendezvous_listen(several, &port);
        if (meeting->listener < 0) return failed(job, "cannot listen for the ranks");
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
    rendezvous_url(address, port, meeting->url, sizeof meeting->url);
    if (secret_make(meeting->secret) != 0) return job->status = 1, -1;
    if (meeting->secret[0] == 0) return 0;
    if (secret_store(meeting->secret, meeting->secret_path) != 0)
        return failed(job, "cannot store the secret");
    for (int i = 0; i < job->host_count; i++)
        if (job->hosts[i].state == HOST_READY) host_send_secret(&job->hosts[i], meeting->secret);
    return 0;
}

/* The DTRAIN_ variables of this process go to processes on other hosts, too. */
static void pass_variables(const options_t *o, recipe_t *recipe, bool elsewhere) {
    for (char **line = environ; elsewhere && *line != NULL; line++)
        if (strncmp(*line, "DTRAIN_", 7) == 0 && strchr(*line, '=') != NULL)
            texts_add(&recipe->variables, *line);
    for (size_t i = 0; i < o->passed.count; i++) texts_add(&recipe->variables, o->passed.list[i]);
}

static void describe_place(process_t *p, const options_t *o, const meeting_t *m) {
    static const char *const own[] = {"DTRAIN_RANK", "DTRAIN_LOCAL_RANK", "DTRAIN_LOCAL_SIZE",
                                      "DTRAIN_SERVER_INDEX", "DTRAIN_LISTEN_FD"};
    recipe_t *recipe = &p->recipe;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) recipe_set(recipe, own[i], NULL);
    recipe_set(recipe, "DTRAIN_RENDEZVOUS", m->url);
    recipe_set(recipe, "DTRAIN_ROLE", p->server ? "server" : "worker");
    recipe_set_number(recipe, "DTRAIN_SIZE", o->workers);
    recipe_set_number(recipe, "DTRAIN_SERVERS", o->servers);
    if (o->mixed) recipe_set(recipe, "DTRAIN_PS_SERVE", "yes");
    if (p->host == NULL && m->secret_path[0] != 0)
        recipe_set(recipe, "DTRAIN_SECRET_FILE", m->secret_path);
    if (p->server) {
        recipe_set_number(recipe, "DTRAIN_SERVER_INDEX", p->index);
        return;
    }
    recipe_set_number(recipe, "DTRAIN_RANK", p->index);
    recipe_set_number(recipe, "DTRAIN_LOCAL_RANK", p->place.local_rank);
    recipe_set_number(recipe, "DTRAIN_LOCAL_SIZE", p->place.local_size);
    if (p->index == 0 && p->host == NULL)
        recipe_set_number(recipe, "DTRAIN_LISTEN_FD", m->listener);
}

static void write_recipe(process_t *p, const options_t *o, const meeting_t *m) {
    recipe_t *recipe = &p->recipe;
    pass_variables(o, recipe, p->host != NULL);
    describe_place(p, o, m);
    if (p->host != NULL) recipe->directory = strdup(m->directory);
    if (!p->server) {
        for (char **word = o->program; *word != NULL; word++) texts_add(&recipe->arguments, *word);
        return;
    }
    recipe->beside = o->server_program == NULL;
    texts_add(&recipe->arguments, recipe->beside ? "dtrain-server" : o->server_program);
}

/* How many processes start at the same time: one by one, each would first wait for a core. */
enum { starting_together = 16 };

/* Confirms the processes that were started before process i, except the last `but` of them. */
static void confirm(job_t *job, int *unconfirmed, int i, int but) {
    for (; *unconfirmed > i + but; (*unconfirmed)--) {
        process_t *p = &job->processes[*unconfirmed];
        while (p->host != NULL && p->host->state == HOST_READY && !p->confirmed) job_wait(job);
        if (p->host == NULL) process_confirm(p);
        if (p->failure.step != FAILED_NOTHING) {
            if (job->status == 0) job->status = process_failed(p);
            p->handled = true;
            job->running--;
            job->workers_running -= !p->server;
        } else if (p->lost && job->status == 0) {
            job->status = LOST_STATUS;
        }
        recipe_free(&p->recipe);
    }
}

/* If a server's program is missing, for example, no worker starts. */
static void start_processes(job_t *job, const meeting_t *meeting) {
    int input = -1, i = job->count - 1, unconfirmed = i;
    for (; i >= 0; i--) {
        process_t *p = &job->processes[i];
        confirm(job, &unconfirmed, i, i == job->options->workers - 1 ? 0 : starting_together);
        if (job->status != 0 || job->interrupted != 0) break;
        if (i > 0)
            input = p->host == NULL ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
        else if (p->host != NULL)
            input_open_at(&job->input, p->host);
        else if (input_open(&job->input, &input) != 0)
            input = -1;
        if (p->host != NULL && p->host->state != HOST_READY) {
            job->status = LOST_STATUS; /* the job has said so */
            break;
        }
        write_recipe(p, job->options, meeting);
        process_start(p, input, i == 0 ? meeting->listener : -1);
        job->running++;
        job->workers_running += !p->server;
    }
    confirm(job, &unconfirmed, i, 0);
}

void start_all(job_t *job) {
    meeting_t meeting = {.listener = -1, .directory = get_current_dir_name()};
    if (meeting.directory == NULL && job->host_count > 0) {
        failed(job, "the current folder");
        return;
    }
    place_all(job);
    const bool several = open_hosts(job) > 1;
    connect_hosts(job);
    if (job->status == 0 && job->interrupted == 0 && open_meeting(job, &meeting, several) == 0)
        start_processes(job, &meeting);
    if (meeting.listener >= 0) close(meeting.listener); /* rank 0 has inherited it */
    explicit_bzero(meeting.secret, sizeof meeting.secret);
    free(meeting.directory);
    if (job->status == 0 && job->interrupted != 0 && !job->processes[0].started)
        job->status = 128 + job->interrupted;
}
