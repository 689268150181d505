/* Starts generations and newcomers, and decides when an elastic job ends.
 * SPDX-License-Identifier: Apache-2.0 */
#include "elastic.h"

#include "clock.h"
#include "elastic_hosts.h"
#include "elastic_starts.h"
#include "starting.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double alone_patience = 5; /* seconds for a file on another host to be noticed */
/* seconds in which other hosts hear what has happened, and say whether the job has formed */
static const double news_patience = 1;
/* seconds after the first good end: until then it is known whom the last generation has taken in */
static const double finish_patience = 1;
static const double never = 1e300;
enum { TIMED_OUT = 124, most_warnings = 100 };

/* What the failure of a worker means depends on what the file says now. True: it was new. */
static bool look_at_meeting(job_t *job) {
    const bool new = meeting_look(&job->elastic->meeting);
    if (new) elastic_tell_place(job);
    return new;
}

void elastic_meet(job_t *job, const char *text, size_t length) {
    if (job->elastic == NULL || length == 0) return;
    if (look_at_meeting(job)) return; /* what a process here has just written is newer */
    meeting_write(&job->elastic->meeting, text, length);
    elastic_tell_place(job);
}

bool elastic_goes_on(const job_t *job) {
    return job->elastic != NULL && !job->elastic->over && !job->stopping && job->interrupted == 0;
}

/* Ends the job, which cannot go on. */
__attribute__((format(printf, 2, 3))) static void give_up(job_t *job, const char *format, ...) {
    elastic_t *e = job->elastic;
    char why[400];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    output_say("the job ends: %s", why);
    e->over = true;
    if (job->status == 0) job->status = e->first_status != 0 ? e->first_status : TIMED_OUT;
    job_stop(job);
}

static bool is_working(const process_t *p) {
    return !p->server && !p->leaving && !p->ended && p->started;
}

/* A newcomer that was started after the newest generation has formed is not in it. */
static bool is_waiting(const job_t *job, const process_t *p) {
    return p->newcomer && p->formed >= job->elastic->meeting.formed;
}

int elastic_workers(const job_t *job, bool members) {
    int count = 0;
    for (int i = 0; i < job->count; i++) {
        const process_t *p = job->processes[i];
        count += is_working(p) && !(members && is_waiting(job, p));
    }
    return count;
}

/* Its end is no failure. */
static void send_away(job_t *job, process_t *p) {
    if (p->leaving || p->ended) return;
    p->leaving = true;
    p->kill_at = clock_now() + job->options->grace;
    process_signal(p, SIGTERM);
}

/* ---- failures and ends ---- */

static void start_again(job_t *job) {
    job->elastic->again = true;
    job->elastic->again_at = never;
    for (int i = 0; i < job->count; i++) {
        process_t *p = job->processes[i];
        if (!p->started) p->handled = job->some_ended = true; /* to be forgotten */
        if (p->started) send_away(job, p);
    }
    output_say("the job had not formed yet; it starts again");
}

static void finish(job_t *job) {
    job->elastic->over = true;
    job->elastic->finish_at = clock_now() + finish_patience;
}

static void send_waiting_away(job_t *job, double now) {
    static const char over[] = "dtrain-rendezvous over\n"; /* for one that comes only now */
    if (now < job->elastic->finish_at) return;
    job->elastic->finish_at = never;
    meeting_write(&job->elastic->meeting, over, strlen(over));
    elastic_tell_place(job);
    for (int i = 0; i < job->count; i++)
        if (is_waiting(job, job->processes[i])) send_away(job, job->processes[i]);
}

bool elastic_ended(job_t *job, const process_t *p) {
    elastic_t *e = job->elastic;
    if (e == NULL || p->leaving) return e != NULL;
    look_at_meeting(job);
    if (e->over && is_waiting(job, p)) return true; /* the job was over before it was taken in */
    if (!elastic_goes_on(job)) return false;
    const bool formed = e->meeting.formed > 0;
    if (p->status == 0 && !p->server) finish(job);
    if (p->server && formed && p->status != 0) e->over = true; /* it had parts of tables */
    if (p->status == 0 || e->over) return false;
    e->failed++;
    if (e->first_status == 0) e->first_status = p->status;
    if (!p->lost) elastic_blame(job, p->place.host, p->began); /* else its host is blamed */
    if (!formed && e->again_at == never) e->again_at = clock_now() + news_patience;
    return true;
}

static void decide_again(job_t *job, double now) {
    elastic_t *e = job->elastic;
    if (e->meeting.formed > 0) e->again_at = never; /* newcomers replace what has failed */
    if (now >= e->again_at) start_again(job);
}

/* A newcomer whose program does not run has ended. */
static void confirm_newcomers(job_t *job) {
    for (int i = 0; i < job->count; i++) {
        process_t *p = job->processes[i];
        if (!p->newcomer || !p->confirmed || p->recipe.arguments.count == 0) continue;
        if (p->failure.step != FAILED_NOTHING) {
            p->status = process_failed(p);
            p->ended = job->some_ended = true;
        }
        recipe_free(&p->recipe);
    }
}

static void kill_late(job_t *job, double now) {
    for (int i = 0; i < job->count; i++) {
        process_t *p = job->processes[i];
        char name[300];
        if (!p->leaving || p->ended || now < p->kill_at) continue;
        process_name(p, name, sizeof name);
        output_say("%s did not end in time; killed", name);
        p->kill_at = never;
        process_signal(p, SIGKILL);
    }
}

static void begin(job_t *job, double now) {
    const bool all = elastic_begin(job, now);
    if (job->status != 0)
        job_stop(job);
    else if (!all && elastic_goes_on(job))
        start_again(job);
}

/* ---- hosts ---- */

/* Sends workers away whose slots are gone: fewer than half at a time, since the others must be the
 * larger side if their coordinator is among those that go (docs/RELIABILITY.md). */
static void leave_slots(job_t *job, double now) {
    elastic_t *e = job->elastic;
    const int working = elastic_workers(job, false);
    int room = working > 2 ? (working - 1) / 2 : 1;
    for (int i = 0; i < job->count; i++)
        if (job->processes[i]->leaving) return; /* they go first */
    for (int i = 0; i < job->count && now >= e->leave_at; i++) {
        process_t *p = job->processes[i];
        char name[300];
        const int slots = e->sites.list[p->place.host].slots;
        if (!is_working(p) || p->place.local_rank < slots || room-- <= 0) continue;
        process_name(p, name, sizeof name);
        output_say("%s leaves: its slot is not in the list any more", name);
        send_away(job, p);
    }
    for (int i = 0; i < job->count; i++)
        if (job->processes[i]->leaving) e->leave_at = now + news_patience;
}

static void say_once(job_t *job, const char *text) {
    texts_t *said = &job->elastic->said;
    for (size_t i = 0; i < said->count; i++)
        if (strcmp(said->list[i], text) == 0) return;
    if (said->count == most_warnings) return; /* texts that always differ */
    texts_add(said, text);
    output_say("%s", text);
}

static void take_list(job_t *job, const host_list_t *hosts) {
    elastic_t *e = job->elastic;
    char text[120];
    if (e->listed && hosts->count == 0) {
        say_once(job, "--discovery: it names no host; the last list stays");
        return;
    }
    e->listed = true;
    elastic_list_hosts(job, hosts);
    if (e->begun || hosts->slots >= job->options->elastic_min) return;
    snprintf(text, sizeof text, "waiting for hosts: there %s %d slot%s, and the job needs %d",
             hosts->slots == 1 ? "is" : "are", hosts->slots, hosts->slots == 1 ? "" : "s",
             job->options->elastic_min);
    say_once(job, text);
}

static void discover(job_t *job, double now) {
    elastic_t *e = job->elastic;
    const discovery_t *discovery = &e->discovery;
    char text[800];
    const discovered_t outcome = discovery_step(&e->discovery, now);
    if (outcome == DISCOVERED_HOSTS) take_list(job, &discovery->hosts);
    if (outcome != DISCOVERED_FAILURE) return;
    if (!e->listed) {
        job->status = discovery->status;
        give_up(job, "%s", discovery->why);
        return;
    }
    snprintf(text, sizeof text, "%s; the last list stays", discovery->why);
    say_once(job, text);
}

/* ---- the end of a job that cannot go on ---- */

static int count_slots(const job_t *job) {
    const sites_t *sites = &job->elastic->sites;
    int slots = 0;
    for (int i = 0; i < sites->count; i++) slots += sites->list[i].slots;
    return slots;
}

static void judge_loss(job_t *job, double now) {
    elastic_t *e = job->elastic;
    const int workers = elastic_workers(job, false);
    if (!e->begun || e->again || e->meeting.formed == 0 || elastic_workers(job, true) > 0) {
        e->alone_since = never;
        return;
    }
    if (e->alone_since == never) e->alone_since = now;
    if (workers == 0)
        give_up(job, "all workers that knew its state have failed");
    else if (now > e->alone_since + alone_patience)
        give_up(job,
                "all workers that knew its state have failed; nobody takes in the newcomers (%d)",
                workers);
}

static void judge_size(job_t *job, double now) {
    elastic_t *e = job->elastic;
    const int min = job->options->elastic_min, workers = elastic_workers(job, false);
    int possible = workers;
    if (workers >= min) e->below_since = never;
    if (workers >= min || e->again) return;
    if (e->below_since == never) e->below_since = now;
    for (int i = 0; i < e->sites.count; i++) possible += site_prospect(&e->sites.list[i]);
    if (possible < min && count_slots(job) >= min)
        give_up(job, "fewer workers run than --elastic allows (%d of %d), and no host can take one",
                workers, min);
    else if (now > e->below_since + job->options->elastic_timeout)
        give_up(job,
                "fewer workers run than --elastic allows (%d of %d), for %g s "
                "(--elastic-timeout)",
                workers, min, job->options->elastic_timeout);
}

/* ---- for job.c ---- */

void elastic_open(job_t *job) {
    const options_t *o = job->options;
    host_entry_t this_one = {.name = "localhost", .slots = o->elastic_max};
    const host_list_t only = {.entries = &this_one, .count = 1, .slots = o->elastic_max};
    elastic_t *e = memset(own_memory(NULL, sizeof *e), 0, sizeof *e);
    job->elastic = e;
    e->below_since = clock_now();
    e->alone_since = e->finish_at = e->again_at = never;
    discovery_open(&e->discovery, o->discovery, o->discovery_interval);
    if (start_prepare(job) != 0) return;
    if (meeting_open(&e->meeting) != 0) {
        job->status = 1;
        return;
    }
    snprintf(job->common.url, sizeof job->common.url, "%s", e->meeting.url);
    job->common.loopback = o->hosts.count == 0 && o->discovery == NULL;
    if (o->discovery == NULL) take_list(job, o->hosts.count > 0 ? &o->hosts : &only);
    elastic_step(job);
}

void elastic_prepare(const job_t *job, struct pollfd polled[DISCOVERY_POLLED]) {
    for (int i = 0; i < DISCOVERY_POLLED; i++) polled[i] = (struct pollfd){.fd = -1};
    if (job->elastic != NULL) discovery_prepare(&job->elastic->discovery, polled);
}

void elastic_handle(job_t *job, const struct pollfd polled[DISCOVERY_POLLED]) {
    if (job->elastic != NULL) discovery_handle(&job->elastic->discovery, polled);
}

void elastic_step(job_t *job) {
    elastic_t *e = job->elastic;
    if (e == NULL) return;
    const double now = clock_now();
    look_at_meeting(job);
    confirm_newcomers(job);
    send_waiting_away(job, now);
    kill_late(job, now);
    if (elastic_goes_on(job)) discover(job, now);
    if (!elastic_goes_on(job)) return;
    if (e->again && job->count == 0) {
        meeting_write(&e->meeting, NULL, 0);
        elastic_tell_place(job);
        e->again = e->begun = false;
    }
    elastic_tend_hosts(job, now);
    decide_again(job, now);
    if (e->begun && !e->again) leave_slots(job, now);
    if (!e->begun && !elastic_connecting(job))
        begin(job, now);
    else if (e->begun && !e->again)
        elastic_grow(job, now);
    if (elastic_goes_on(job)) judge_loss(job, now);
    if (elastic_goes_on(job)) judge_size(job, now);
}

void elastic_summarize(job_t *job) {
    const elastic_t *e = job->elastic;
    if (e == NULL) return;
    if (job->status == 0 && job->interrupted != 0 && !e->begun)
        job->status = 128 + job->interrupted;
    if (job->status == 0 && e->failed > 0)
        output_say("the job has ended well; %d worker%s failed, of which %d %s replaced", e->failed,
                   e->failed == 1 ? "" : "s", e->replaced, e->replaced == 1 ? "was" : "were");
}

void elastic_close(job_t *job) {
    elastic_t *e = job->elastic;
    if (e == NULL) return;
    discovery_close(&e->discovery);
    sites_free(&e->sites);
    texts_free(&e->said);
    meeting_close(&e->meeting);
    free(e);
}
