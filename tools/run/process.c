/* Starts and signals a process through a child or through its host.
 * SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include "clock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void start_here(process_t *p, const char *name, int input, int listener) {
    int fds[3] = {input, -1, -1};
    const bool first = !p->server && p->index == 0;
    if (stream_open(&p->out, STDOUT_FILENO, first && isatty(STDOUT_FILENO), name, &fds[1]) != 0 ||
        stream_open(&p->err, STDERR_FILENO, first && isatty(STDERR_FILENO), name, &fds[2]) != 0)
        p->failure = (failure_t){FAILED_START, errno};
    else
        p->failure = child_start(&p->child, &p->recipe, fds, listener);
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0) close(fds[i]);
    p->confirmed = p->failure.step != FAILED_NOTHING;
}

void process_start(process_t *p, int input, bool listens, int listener) {
    char name[16];
    const bool first = !p->server && p->index == 0;
    snprintf(name, sizeof name, p->server ? "s%d" : "%d", p->index);
    p->started = true;
    p->began = clock_now();
    if (p->host == NULL) {
        start_here(p, name, input, listener);
        return;
    }
    stream_begin(&p->out, STDOUT_FILENO, name);
    stream_begin(&p->err, STDERR_FILENO, name);
    host_start(p->host, p->number, &p->recipe, first, listens);
}

void process_confirm(process_t *p) {
    if (p->confirmed) return;
    p->failure = child_confirm(&p->child);
    p->confirmed = true;
}

int process_failed(const process_t *p) {
    char where[300] = "";
    if (p->host != NULL) snprintf(where, sizeof where, " on host %s", p->host->name);
    return failure_report(p->failure, &p->recipe, where);
}

bool process_poll(process_t *p) {
    if (p->host != NULL || p->ended || !child_poll(&p->child)) return false;
    p->ended = true;
    p->status = p->child.status;
    p->signal = p->child.signal;
    return true;
}

void process_take(process_t *p, const frame_t *frame) {
    int32_t numbers[2];
    switch (frame->kind) {
    case FRAME_STARTED: p->confirmed = true; break;
    case FRAME_FAILED:
        p->confirmed = true;
        p->failure = frame_numbers(frame, 2, numbers) ? (failure_t){numbers[0], numbers[1]}
                                                      : (failure_t){FAILED_START, EPROTO};
        break;
    case FRAME_OUTPUT: stream_feed(&p->out, frame->bytes, frame->length); break;
    case FRAME_ERRORS: stream_feed(&p->err, frame->bytes, frame->length); break;
    case FRAME_ENDED:
        if (p->ended || !frame_numbers(frame, 2, numbers)) break;
        p->confirmed = p->ended = true;
        p->status = numbers[0];
        p->signal = numbers[1];
        break;
    default: break;
    }
}

void process_lose(process_t *p) {
    if (!p->started || p->ended) return;
    p->confirmed = p->ended = p->lost = true;
    p->status = 255; /* as ssh's */
}

void process_signal(const process_t *p, int number) {
    if (p->host == NULL)
        child_signal(&p->child, number);
    else if (p->started && p->host->state == HOST_READY)
        host_signal(p->host, p->number, number);
}

void process_release(process_t *p) {
    if (p->host != NULL && p->started && p->host->state == HOST_READY)
        host_release(p->host, p->number);
    else
        process_signal(p, SIGKILL); /* before its last output is read */
    stream_finish(&p->out);
    stream_finish(&p->err);
    child_release(&p->child);
    recipe_free(&p->recipe);
}

void process_name(const process_t *p, char *name, size_t size) {
    if (p->host != NULL)
        snprintf(name, size, "%s %d on host %s", p->kind, p->index, p->host->name);
    else
        snprintf(name, size, "%s %d", p->kind, p->index);
}
