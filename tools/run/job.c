/* Starts all processes, waits for their ends, signals and timeouts, and stops the job.
 * SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include "input.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double kill_after = 2; /* seconds from TERM to KILL */
static const double patience = 10;  /* seconds for processes to end after a signal from the user */
static const double server_patience = 5; /* seconds for servers, once all workers have ended */
static const double never = 1e300;
enum { FIXED = 3 }; /* descriptors to poll before the processes' */

typedef struct job {
    const options_t *options;
    process_t *processes;  /* workers, then servers */
    struct pollfd *polled; /* signals, two for the input, then two per process */
    input_t input;
    int count, running, workers_running;
    int status;      /* exit status of the first process to fail */
    int interrupted; /* the first signal passed on, or 0 */
    bool stopping;   /* TERM was sent */
    double deadline; /* --timeout */
    double stop_at;  /* when the grace time after a failure is over */
    double kill_at;  /* when KILL follows */
} job_t;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void signal_all(const job_t *job, int number) {
    for (int i = 0; i < job->count; i++) process_signal(&job->processes[i], number);
}

static void stop(job_t *job) {
    if (job->stopping) return;
    job->stopping = true;
    job->kill_at = now() + kill_after;
    signal_all(job, SIGTERM);
}

static void report(const process_t *p) {
    char name[32], how[96];
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
    if (job->workers_running == 0 && !job->stopping && job->kill_at == never && job->running > 0)
        job->kill_at = now() + server_patience;
    if (p->status == 0) return;
    if (!job->stopping && job->interrupted == 0) report(p);
    if (job->status != 0) return;
    job->status = p->status;
    if (job->interrupted != 0)
        job->kill_at = now() + patience; /* the other processes got the signal, too */
    else if (!job->options->keep_going)
        job->stop_at = now() + job->options->grace; /* the library tells them of the failure */
}

/* Handles killed processes before failed ones: of two that ended at the same time, the failed one
 * has probably noticed that the other was killed. */
static void handle_children(job_t *job) {
    for (int i = 0; i < job->count; i++) process_poll(&job->processes[i]);
    for (int killed = 1; killed >= 0; killed--)
        for (int i = 0; i < job->count; i++) {
            process_t *p = &job->processes[i];
            if (!p->ended || p->handled || (killed && p->signal == 0)) continue;
            p->handled = true;
            handle_end(job, p);
        }
}

static void handle_signal(job_t *job, int number) {
    if (number == SIGCHLD) {
        handle_children(job);
    } else if (number == SIGINT && job->interrupted == SIGINT) {
        signal_all(job, SIGKILL);
    } else {
        if (job->interrupted == 0) job->interrupted = number;
        output_say("%s: passed on%s", strsignal(number),
                   number == SIGINT ? "; a second one kills" : "");
        signal_all(job, number);
    }
}

static void handle_time(job_t *job) {
    const double t = now();
    if (t >= job->deadline) {
        output_say("timed out after %g s", job->options->timeout);
        job->deadline = never;
        if (job->status == 0) job->status = 124;
        stop(job);
    }
    if (t >= job->stop_at) {
        job->stop_at = never;
        stop(job);
    }
    if (t >= job->kill_at) {
        for (int i = 0; i < job->count; i++) {
            char name[32];
            if (job->processes[i].ended) continue;
            process_name(&job->processes[i], name, sizeof name);
            output_say("%s did not end in time; killed", name);
        }
        job->kill_at = never;
        signal_all(job, SIGKILL);
    }
}

static void wait_for_events(job_t *job) {
    const double next = fmin(fmin(job->deadline, job->kill_at), job->stop_at);
    const double left = next == never ? -1 : (next - now()) * 1000 + 1;
    struct pollfd *polled = job->polled + FIXED;
    for (int i = 0; i < job->count; i++) {
        const process_t *p = &job->processes[i];
        polled[2 * i] = (struct pollfd){.fd = p->out.from, .events = POLLIN};
        polled[2 * i + 1] = (struct pollfd){.fd = p->err.from, .events = POLLIN};
    }
    input_prepare(&job->input, job->polled + 1);
    const int milliseconds = next == never ? -1 : left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
    if (poll(job->polled, FIXED + 2 * (nfds_t)job->count, milliseconds) <= 0) return;
    for (int i = 0; i < job->count; i++) {
        if (polled[2 * i].revents != 0) stream_read(&job->processes[i].out);
        if (polled[2 * i + 1].revents != 0) stream_read(&job->processes[i].err);
    }
    input_relay(&job->input, job->polled + 1);
    struct signalfd_siginfo info;
    while (read(job->polled[0].fd, &info, sizeof info) == (ssize_t)sizeof info)
        handle_signal(job, (int)info.ssi_signo);
}

/* How many processes start at the same time: one by one, each would first wait for a core. */
enum { starting_together = 16 };

/* Confirms the processes that were started before process i, except the last `but` of them. */
static void confirm(job_t *job, int *unconfirmed, int i, int but) {
    for (; *unconfirmed > i + but; (*unconfirmed)--) {
        process_t *p = &job->processes[*unconfirmed];
        const int error = process_confirm(p);
        if (error == 0) continue;
        if (job->status == 0) job->status = process_failed(p, job->options, error);
        p->handled = true;
        job->running--;
        job->workers_running -= !p->server;
    }
}

/* Starts the processes in reverse order: if a server's program is missing, for example, no worker
 * starts. */
static void start_all(job_t *job, const rendezvous_t *rendezvous) {
    int input = -1, i = job->count - 1, unconfirmed = i;
    for (; i >= 0; i--) {
        process_t *p = &job->processes[i];
        p->server = i >= job->options->workers;
        p->index = p->server ? i - job->options->workers : i;
        confirm(job, &unconfirmed, i, i == job->options->workers - 1 ? 0 : starting_together);
        if (job->status != 0) break;
        if (i > 0)
            input = open("/dev/null", O_RDONLY | O_CLOEXEC);
        else if (input_open(&job->input, &input) != 0)
            input = -1;
        job->status = process_start(p, job->options, rendezvous, input);
        if (job->status != 0) break;
        job->running++;
        job->workers_running += !p->server;
    }
    confirm(job, &unconfirmed, i, 0);
    close(rendezvous->listen_fd); /* rank 0 has inherited it */
    if (job->status != 0) stop(job);
}

static void clean_up(job_t *job) {
    signal_all(job, SIGKILL); /* programs that the processes have left running in their groups */
    for (int i = 0; i < job->count; i++) {
        stream_finish(&job->processes[i].out);
        stream_finish(&job->processes[i].err);
        if (job->processes[i].pid != 0) waitpid(job->processes[i].pid, NULL, 0);
    }
    free(job->processes);
    free(job->polled);
}

/* Receives signals through a descriptor, which is polled with the output. */
static int open_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    for (const int *s = (const int[]){SIGCHLD, SIGINT, SIGTERM, SIGHUP, 0}; *s != 0; s++)
        sigaddset(&set, *s);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Allows two descriptors per process and some more. Child processes keep the old limit. */
static void allow_files(int processes) {
    struct rlimit files;
    const rlim_t wanted = 2 * (rlim_t)processes + 64;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted) return;
    files.rlim_cur = wanted < files.rlim_max ? wanted : files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

int job_run(const options_t *options) {
    rendezvous_t rendezvous;
    job_t job = {.options = options,
                 .count = options->workers + options->servers,
                 .deadline = options->timeout > 0 ? now() + options->timeout : never,
                 .kill_at = never,
                 .stop_at = never,
                 .input.to = -1};
    allow_files(job.count);
    if (rendezvous_create(&rendezvous) != 0) return 1;
    job.processes = calloc((size_t)job.count, sizeof *job.processes);
    job.polled = calloc(FIXED + 2 * (size_t)job.count, sizeof *job.polled);
    const int signals = open_signals();
    if (job.processes == NULL || job.polled == NULL || signals < 0) {
        output_say("cannot start the job: %s", strerror(errno));
        return 1;
    }
    job.polled[0] = (struct pollfd){.fd = signals, .events = POLLIN};
    for (int i = 0; i < job.count; i++) job.processes[i].out.from = job.processes[i].err.from = -1;
    start_all(&job, &rendezvous);
    while (job.running > 0) {
        wait_for_events(&job);
        handle_time(&job);
    }
    clean_up(&job);
    return job.status;
}
