/* Runs the script of --discovery and reads its list of hosts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "discovery.h"

#include "texts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double longest_run = 30; /* seconds */
enum { LONGEST_TEXT = 1 << 20, TIMED_OUT = 124 };

void discovery_open(discovery_t *d, const char *script, double interval) {
    *d = (discovery_t){.script = script, .interval = interval, .output = -1, .begun = -1e300};
    d->child.report = d->complaints.from = -1;
}

void discovery_prepare(const discovery_t *d, struct pollfd polled[DISCOVERY_POLLED]) {
    polled[0] = (struct pollfd){.fd = d->output, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = d->complaints.from, .events = POLLIN};
    polled[2] = (struct pollfd){.fd = d->child.report, .events = POLLIN};
}

/* Frees the process and its pipes; what it has left running in its group is killed. */
static void end(discovery_t *d) {
    if (d->output >= 0) close(d->output);
    if (d->child.report >= 0) close(d->child.report);
    d->output = d->child.report = -1;
    stream_finish(&d->complaints);
    child_release(&d->child);
}

__attribute__((format(printf, 3, 4))) static discovered_t fail(discovery_t *d, int status,
                                                               const char *format, ...) {
    va_list args;
    int length = snprintf(d->why, sizeof d->why, "--discovery %.200s: ", d->script);
    va_start(args, format);
    vsnprintf(d->why + length, sizeof d->why - (size_t)length, format, args);
    va_end(args);
    d->status = status;
    end(d);
    return DISCOVERED_FAILURE;
}

static discovered_t start(discovery_t *d, double now) {
    recipe_t recipe = {0};
    int ends[2] = {-1, -1}, fds[3] = {-1, -1, -1};
    d->begun = now;
    d->length = 0;
    failure_t failure = {FAILED_START, 0};
    texts_add(&recipe.arguments, d->script);
    fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fds[0] >= 0 && pipe2(ends, O_CLOEXEC) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 &&
        stream_open(&d->complaints, -1, false, "", &fds[2]) == 0) {
        fds[1] = ends[1];
        failure = child_start(&d->child, &recipe, fds, -1);
    } else {
        failure.error = errno;
    }
    d->output = ends[0];
    if (ends[1] >= 0) close(ends[1]);
    if (fds[0] >= 0) close(fds[0]);
    if (fds[2] >= 0) close(fds[2]);
    recipe_free(&recipe);
    if (failure.step == FAILED_NOTHING) return DISCOVERED_NOTHING;
    return fail(d, 1, "it cannot be started: %s", strerror(failure.error));
}

/* True: there may be more. */
static bool read_some(discovery_t *d) {
    if (d->output < 0 || d->length > LONGEST_TEXT) return false;
    d->text = own_memory(d->text, d->length + 4096);
    const ssize_t n = read(d->output, d->text + d->length, 4096);
    if (n > 0) d->length += (size_t)n;
    return n > 0 || (n < 0 && errno == EINTR);
}

void discovery_handle(discovery_t *d, const struct pollfd polled[DISCOVERY_POLLED]) {
    if (polled[0].revents != 0 && !read_some(d) && d->output >= 0 && errno != EAGAIN) {
        close(d->output); /* its end, or more than anybody reads */
        d->output = -1;
    }
    if (polled[1].revents != 0) stream_read(&d->complaints);
    if (polled[2].revents == 0) return;
    const failure_t failure = child_confirm(&d->child);
    if (failure.step == FAILED_NOTHING) return;
    d->failed = true;
    fail(d, failure.error == ENOENT ? 127 : 126, "it cannot be run: %s", strerror(failure.error));
}

/* Its list, once it has ended well. */
static discovered_t read_list(discovery_t *d) {
    host_list_t hosts = {0};
    char what[300];
    if (d->length > LONGEST_TEXT) return fail(d, 1, "it prints more than 1 MiB");
    snprintf(what, sizeof what, "--discovery %.200s", d->script);
    FILE *file = d->length > 0 ? fmemopen(d->text, d->length, "r") : fopen("/dev/null", "re");
    const int result = file != NULL ? host_list_parse(&hosts, file, what) : -1;
    if (file == NULL) snprintf(hosts.why, sizeof hosts.why, "%s: %s", what, strerror(errno));
    if (file != NULL) fclose(file);
    end(d);
    if (result != 0) {
        snprintf(d->why, sizeof d->why, "%s", hosts.why);
        d->status = 1;
        host_list_free(&hosts);
        return DISCOVERED_FAILURE;
    }
    host_list_free(&d->hosts);
    d->hosts = hosts;
    return DISCOVERED_HOSTS;
}

discovered_t discovery_step(discovery_t *d, double now) {
    if (d->script == NULL) return DISCOVERED_NOTHING;
    if (d->failed) return d->failed = false, DISCOVERED_FAILURE;
    if (d->child.pid == 0)
        return now >= d->begun + d->interval ? start(d, now) : DISCOVERED_NOTHING;
    if (d->child.report >= 0) return DISCOVERED_NOTHING; /* not known yet whether it runs */
    if (child_poll(&d->child)) {
        while (read_some(d)) continue;
        stream_drain(&d->complaints);
        const char *last = d->complaints.last, *colon = last[0] != 0 ? ": " : "";
        if (d->child.signal != 0)
            return fail(d, d->child.status, "killed by signal %d (%s)%s%s", d->child.signal,
                        strsignal(d->child.signal), colon, last);
        if (d->child.status != 0)
            return fail(d, d->child.status, "exit status %d%s%s", d->child.status, colon, last);
        return read_list(d);
    }
    if (now < d->begun + longest_run) return DISCOVERED_NOTHING;
    return fail(d, TIMED_OUT, "it has not ended within %g s; killed", longest_run);
}

void discovery_close(discovery_t *d) {
    end(d);
    free(d->text);
    host_list_free(&d->hosts);
}
