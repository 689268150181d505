/* Waits for ends of processes, signals and timeouts, and stops the job.
 * SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include "clock.h"
#include "elastic.h"
#include "heart.h"
#include "signals.h"
#include "starting.h"
#include "texts.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const double kill_after = 2; /* seconds from TERM to KILL */
static const double patience = 10;  /* seconds for processes to end after a signal from the user */
static const double connecting_patience = 60; /* seconds for ssh and the shell on another host */
static const double server_patience = 5;      /* seconds for servers, once all workers have ended */
static const double finish_patience = 10; /* seconds for agents, once all processes have ended */
static const double never = 1e300;
enum { FIXED = 3 + DISCOVERY_POLLED }; /* descriptors to poll before the processes' */

static void signal_all(const job_t *job, int number) {
    for (int i = 0; i < job->count; i++) process_signal(job->processes[i], number);
}

void job_stop(job_t *job) {
    if (job->stopping) return;
    job->stopping = true;
    job->kill_at = clock_now() + kill_after;
    signal_all(job, SIGTERM);
}

static void report(const process_t *p) {
    char name[300], how[96];
    process_name(p, name, sizeof name);
    if (p->signal != 0)
        snprintf(how, sizeof how, "killed by signal %d (%s)", p->signal, strsignal(p->signal));
    else
        snprintf(how, sizeof how, "exit status %d", p->status);
    if (p->err.last[0] != 0)
        output_say("%s failed: %s; its last line: %s", name, how, p->err.last);
    else
        output_say("%s failed: %s", name, how);
}

static void handle_end(job_t *job, process_t *p) {
    stream_drain(&p->err);
    job->running--;
    if (!p->server) job->workers_running--;
    const bool quiet = job->stopping || job->interrupted != 0 || p->lost || p->leaving ||
                       p->failure.step != FAILED_NOTHING;
    if (p->status != 0 && !quiet) report(p);
    const bool handled = elastic_ended(job, p);
    if (job->workers_running == 0 && !job->stopping && job->kill_at == never && job->running > 0 &&
        !elastic_goes_on(job))
        job->kill_at = clock_now() + server_patience;
    if (handled || p->status == 0 || job->status != 0) return;
    job->status = p->status;
    if (job->interrupted != 0)
        job->kill_at = clock_now() + patience; /* the other processes got the signal, too */
    else if (!job->options->keep_going)
        job->stop_at =
            clock_now() + job->options->grace; /* the library tells them of the failure */
}

static void free_process(process_t *p) {
    process_release(p);
    free(p);
}

/* Of an elastic job: what has ended makes room for newcomers. */
static void forget_ended(job_t *job) {
    int left = 0;
    for (int i = 0; i < job->count; i++) {
        process_t *p = job->processes[i];
        if (p->handled)
            free_process(p);
        else
            job->processes[left++] = p;
    }
    job->count = left;
}

/* Handles killed processes before failed ones: of two that ended at the same time, the failed one
 * has probably noticed that the other was killed. */
static void handle_ends(job_t *job) {
    if (!job->some_ended) return;
    job->some_ended = false;
    for (int i = 0; i < job->count; i++) process_poll(job->processes[i]);
    for (int killed = 1; killed >= 0; killed--)
        for (int i = 0; i < job->count; i++) {
            process_t *p = job->processes[i];
            if (!p->ended || p->handled || (killed && p->signal == 0)) continue;
            p->handled = true;
            handle_end(job, p);
        }
    if (job->elastic != NULL) forget_ended(job);
}

static void handle_signal(job_t *job, int number) {
    if (number == SIGCHLD) {
        job->some_ended = true;
    } else if (number == SIGINT && job->interrupted == SIGINT) {
        signal_all(job, SIGKILL);
    } else {
        if (job->interrupted == 0) job->interrupted = number;
        output_say("%s: passed on%s", strsignal(number),
                   number == SIGINT ? "; a second one kills" : "");
        signal_all(job, number);
    }
}

static process_t *find_process(const job_t *job, uint32_t number) {
    int first = 0, end = job->count;
    while (first < end) {
        const int middle = first + (end - first) / 2;
        if ((uint32_t)job->processes[middle]->number < number)
            first = middle + 1;
        else
            end = middle;
    }
    const bool found = first < job->count && (uint32_t)job->processes[first]->number == number;
    return found ? job->processes[first] : NULL;
}

static void take_frame(void *arg, host_t *host, const frame_t *frame) {
    job_t *job = arg;
    if (frame->kind == FRAME_PLACE) {
        elastic_meet(job, frame->bytes, frame->length);
        return;
    }
    process_t *p = find_process(job, frame->process);
    if (p == NULL || p->host != host) return;
    if (frame->kind == FRAME_TAKEN) input_take(&job->input, host, p->number);
    process_take(p, frame);
    job->some_ended |= p->ended;
}

/* "ranks 2 and 3", "rank 1 and server 0", ...; of many only the first ones. */
static void name_processes(const job_t *job, const host_t *host, char *names, size_t size) {
    size_t length = 0;
    int count = 0;
    names[0] = 0;
    for (int i = 0; i < job->count; i++) {
        const process_t *p = job->processes[i];
        if (p->host != host || !p->started || p->ended || count++ >= 8) continue;
        length += (size_t)snprintf(names + length, size - length, "%s%s %d", count > 1 ? ", " : "",
                                   p->kind, p->index);
    }
    if (count > 8) snprintf(names + length, size - length, ", and %d more", count - 8);
}

/* Its agent ends what runs there when it does not hear from the launcher any more. */
static void handle_loss(job_t *job, host_t *host) {
    char names[256];
    host->reported = true;
    name_processes(job, host, names, sizeof names);
    if (host->ready)
        output_say("host %s is lost: %s%s%s", host->name, host->why,
                   names[0] != 0 ? "; with it " : "", names);
    else
        output_say("cannot start processes on host %s: %s", host->name, host->why);
    for (int i = 0; i < job->count; i++)
        if (job->processes[i]->host == host) process_lose(job->processes[i]);
    job->some_ended = true;
}

static void look_at_hosts(job_t *job) {
    const double now = clock_now(), pause = clock_pause(job->looked, now);
    char why[80];
    job->looked = now;
    for (int i = 0; i < job->host_count; i++) {
        host_t *host = job->hosts[i];
        host->heard += pause;
        host->opened += pause;
        if (host->state == HOST_READY && now > host->heard + job->options->host_timeout) {
            snprintf(why, sizeof why, "nothing was heard from it for %g s (--host-timeout)",
                     job->options->host_timeout);
            host_lose(host, why);
        }
        if (host->state == HOST_CONNECTING && now > host->opened + connecting_patience)
            host_lose(host, "no answer within 60 s");
        if (host->state == HOST_LOST && !host->reported) handle_loss(job, host);
    }
}

static void handle_time(job_t *job) {
    const double t = clock_now();
    if (t >= job->deadline) {
        output_say("timed out after %g s", job->options->timeout);
        job->deadline = never;
        if (job->status == 0) job->status = 124;
        job_stop(job);
    }
    if (t >= job->stop_at) {
        job->stop_at = never;
        job_stop(job);
    }
    if (t >= job->kill_at) {
        for (int i = 0; i < job->count; i++) {
            char name[300];
            if (job->processes[i]->ended) continue;
            process_name(job->processes[i], name, sizeof name);
            output_say("%s did not end in time; killed", name);
        }
        job->kill_at = never;
        signal_all(job, SIGKILL);
    }
}

static int milliseconds_left(const job_t *job) {
    const double most = job->elastic != NULL ? MEETING_LOOKS : job->host_count > 0 ? 500 : 60000;
    const double next = fmin(fmin(job->deadline, job->kill_at), job->stop_at);
    if (next == never) return most < 60000 ? (int)most : -1;
    return (int)fmin(fmax((next - clock_now()) * 1000 + 1, 0), most);
}

void job_wait(job_t *job) {
    const size_t count = FIXED + 2 * (size_t)job->count + HOST_POLLED * (size_t)job->host_count;
    job->polled = own_memory(job->polled, count * sizeof *job->polled);
    struct pollfd *polled = job->polled + FIXED, *hosts = polled + 2 * job->count;
    job->polled[0] = (struct pollfd){.fd = job->signals, .events = POLLIN};
    for (int i = 0; i < job->count; i++) {
        const process_t *p = job->processes[i];
        polled[2 * i] = (struct pollfd){.fd = p->out.from, .events = POLLIN};
        polled[2 * i + 1] = (struct pollfd){.fd = p->err.from, .events = POLLIN};
    }
    for (int i = 0; i < job->host_count; i++) host_prepare(job->hosts[i], hosts + HOST_POLLED * i);
    input_prepare(&job->input, job->polled + 1);
    elastic_prepare(job, job->polled + 3);
    if (poll(job->polled, count, milliseconds_left(job)) > 0) {
        for (int i = 0; i < job->count; i++) {
            if (polled[2 * i].revents != 0) stream_read(&job->processes[i]->out);
            if (polled[2 * i + 1].revents != 0) stream_read(&job->processes[i]->err);
        }
        for (int i = 0; i < job->host_count; i++)
            host_handle(job->hosts[i], hosts + HOST_POLLED * i, clock_now(), take_frame, job);
        input_relay(&job->input, job->polled + 1);
        elastic_handle(job, job->polled + 3);
        for (int number; (number = signals_take(job->signals)) != 0;) handle_signal(job, number);
    }
    if (job->host_count > 0) look_at_hosts(job);
}

process_t *job_add(job_t *job) {
    process_t *p = memset(own_memory(NULL, sizeof *p), 0, sizeof *p);
    p->number = job->next_number++;
    p->out.from = p->err.from = p->child.report = -1;
    job->processes = own_memory(job->processes, (size_t)(job->count + 1) * sizeof *job->processes);
    return job->processes[job->count++] = p;
}

void job_add_host(job_t *job) {
    host_t *host = memset(own_memory(NULL, sizeof *host), 0, sizeof *host);
    job->hosts = own_memory(job->hosts, (size_t)(job->host_count + 1) * sizeof *job->hosts);
    job->hosts[job->host_count++] = host;
}

/* Ends what the processes have left running in their groups, and prints the last output. */
static void clean_up(job_t *job) {
    const double end = clock_now() + finish_patience;
    for (int i = 0; i < job->host_count; i++)
        if (job->hosts[i]->state == HOST_READY) host_finish(job->hosts[i]);
    for (int i = 0; i < job->host_count; i++)
        while (job->hosts[i]->state == HOST_READY && clock_now() < end) job_wait(job);
    for (int i = 0; i < job->count; i++) free_process(job->processes[i]);
    heart_stop(job->heart);
    for (int i = 0; i < job->host_count; i++) {
        if (job->hosts[i]->state != HOST_UNUSED) host_close(job->hosts[i]);
        free(job->hosts[i]);
    }
    elastic_close(job); /* after the heart, which would keep the folder */
    explicit_bzero(job->common.secret, sizeof job->common.secret);
    free(job->common.directory);
    free(job->hosts);
    free(job->processes);
    free(job->polled);
}

/* Allows two descriptors per process, three per host and some more. Child processes keep the old
 * limit. */
static void allow_files(const options_t *options) {
    struct rlimit files;
    const bool elastic = options->elastic_max > 0; /* others come while some end */
    const int workers = elastic ? 2 * options->elastic_max : options->workers;
    const int hosts = options->discovery != NULL ? MAX_HOSTS : options->hosts.count;
    const rlim_t wanted =
        2 * (rlim_t)(workers + options->servers) + HOST_POLLED * (rlim_t)hosts + 64;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted) return;
    files.rlim_cur = wanted < files.rlim_max ? wanted : files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

int job_run(const options_t *options) {
    job_t job = {.options = options,
                 .deadline = options->timeout > 0 ? clock_now() + options->timeout : never,
                 .kill_at = never,
                 .stop_at = never,
                 .looked = clock_now(),
                 .signals = signals_open(),
                 .input.to = -1};
    if (job.signals < 0) {
        output_say("cannot start the job: %s", strerror(errno));
        return 1;
    }
    allow_files(options);
    for (int i = 0; i < options->hosts.count; i++) job_add_host(&job);
    if (options->elastic_max > 0)
        elastic_open(&job);
    else
        start_all(&job);
    if (job.status != 0) job_stop(&job);
    while (job.running > 0 || elastic_goes_on(&job)) {
        job_wait(&job);
        handle_ends(&job);
        handle_time(&job);
        elastic_step(&job);
    }
    elastic_summarize(&job);
    clean_up(&job);
    return job.status;
}
