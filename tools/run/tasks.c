/* Starts an agent's processes and moves their input and output.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tasks.h"

#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void close_one(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static int unblock(int fd) { return fcntl(fd, F_SETFL, O_NONBLOCK); }

static int open_output(int *mine, int *childs) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    *mine = ends[0];
    *childs = ends[1];
    return unblock(*mine);
}

static int open_input(bool wanted, int *mine, int *childs) {
    int ends[2];
    if (!wanted) return (*childs = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0 ? -1 : 0;
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    *mine = ends[1];
    *childs = ends[0];
    return unblock(*mine);
}

static failure_t start(task_t *task, const recipe_t *recipe, bool with_input, int listener) {
    int fds[3] = {-1, -1, -1};
    failure_t failure = {FAILED_START, 0};
    if (open_input(with_input, &task->input, &fds[0]) == 0 &&
        open_output(&task->out, &fds[1]) == 0 && open_output(&task->err, &fds[2]) == 0)
        failure = child_start(&task->child, recipe, fds, listener);
    else
        failure.error = errno;
    for (int i = 0; i < 3; i++) close_one(&fds[i]);
    return failure;
}

static void close_all(task_t *task) {
    close_one(&task->input);
    close_one(&task->out);
    close_one(&task->err);
}

void tasks_start(tasks_t *tasks, channel_t *to, uint32_t number, const recipe_t *recipe,
                 bool with_input, int listener) {
    task_t *task = memset(own_memory(NULL, sizeof *task), 0, sizeof *task);
    task->number = number;
    task->out = task->err = task->input = task->child.report = -1;
    const failure_t failure = start(task, recipe, with_input, listener);
    if (failure.step != FAILED_NOTHING) {
        channel_send_numbers(to, FRAME_FAILED, number, failure.step, failure.error);
        close_all(task);
        free(task);
        return;
    }
    tasks->list = own_memory(tasks->list, (size_t)(tasks->count + 1) * sizeof(task_t *));
    tasks->list[tasks->count++] = task;
}

task_t *tasks_find(const tasks_t *tasks, uint32_t number) {
    for (int i = 0; i < tasks->count; i++)
        if (tasks->list[i]->number == number) return tasks->list[i];
    return NULL;
}

/* Says that the input has taken all, also where nobody reads it any more. */
static void write_input(task_t *task, channel_t *to) {
    while (task->begin < task->end) {
        const ssize_t n =
            write_quietly(task->input, task->given + task->begin, task->end - task->begin);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0) {
            close_one(&task->input);
            break;
        }
        task->begin += (size_t)n;
    }
    task->begin = task->end = 0;
    channel_send(to, FRAME_TAKEN, task->number, NULL, 0);
}

void task_give(task_t *task, channel_t *to, const frame_t *frame) {
    if (frame->length == 0) {
        close_one(&task->input);
        return;
    }
    memcpy(task->given, frame->bytes, frame->length); /* the launcher waits for TAKEN */
    task->begin = 0;
    task->end = frame->length;
    write_input(task, to);
}

/* True: there may be more. */
static bool relay(int *from, channel_t *to, uint32_t kind, uint32_t number) {
    char bytes[FRAME_BYTES];
    if (*from < 0) return false;
    const ssize_t n = read(*from, bytes, sizeof bytes);
    if (n > 0) channel_send(to, kind, number, bytes, (size_t)n);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) close_one(from);
    return n > 0;
}

/* More pieces than a full pipe needs, but limited, in case another process is still writing. */
static void relay_all(task_t *task, channel_t *to) {
    for (int i = 0; i < 512 && relay(&task->out, to, FRAME_OUTPUT, task->number); i++) continue;
    for (int i = 0; i < 512 && relay(&task->err, to, FRAME_ERRORS, task->number); i++) continue;
}

void task_prepare(const task_t *task, bool quiet, struct pollfd polled[TASK_POLLED]) {
    const bool pending = task->begin < task->end;
    polled[0] = (struct pollfd){.fd = quiet ? -1 : task->out, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = quiet ? -1 : task->err, .events = POLLIN};
    polled[2] = (struct pollfd){.fd = pending ? task->input : -1, .events = POLLOUT};
    polled[3] = (struct pollfd){.fd = task->child.report, .events = POLLIN};
}

static void confirm(task_t *task, channel_t *to) {
    const failure_t failure = child_confirm(&task->child);
    if (failure.step == FAILED_NOTHING) {
        channel_send(to, FRAME_STARTED, task->number, NULL, 0);
    } else {
        channel_send_numbers(to, FRAME_FAILED, task->number, failure.step, failure.error);
        task->told = true; /* the launcher expects no end of what did not start */
    }
}

void task_handle(task_t *task, channel_t *to, const struct pollfd polled[TASK_POLLED]) {
    if (polled[0].revents != 0) relay(&task->out, to, FRAME_OUTPUT, task->number);
    if (polled[1].revents != 0) relay(&task->err, to, FRAME_ERRORS, task->number);
    if (polled[2].revents != 0) write_input(task, to);
    if (polled[3].revents != 0) confirm(task, to);
}

void tasks_reap(tasks_t *tasks, channel_t *to) {
    for (int i = 0; i < tasks->count; i++) {
        task_t *task = tasks->list[i];
        if (task->child.report >= 0 || task->told) continue; /* confirm it first */
        if (!task->child.ended && !child_poll(&task->child)) continue;
        relay_all(task, to);
        channel_send_numbers(to, FRAME_ENDED, task->number, task->child.status, task->child.signal);
        task->told = true;
    }
}

static void release(task_t *task, channel_t *to) {
    relay_all(task, to);
    close_all(task);
    if (task->child.report >= 0) close(task->child.report);
    child_release(&task->child);
    free(task);
}

void tasks_release(tasks_t *tasks, channel_t *to, uint32_t number) {
    for (int i = 0; i < tasks->count; i++) {
        if (tasks->list[i]->number != number) continue;
        release(tasks->list[i], to);
        memmove(tasks->list + i, tasks->list + i + 1,
                (size_t)(--tasks->count - i) * sizeof(task_t *));
        return;
    }
}

void tasks_end(tasks_t *tasks, channel_t *to) {
    for (int i = 0; i < tasks->count; i++) child_signal(&tasks->list[i]->child, SIGKILL);
    for (int i = 0; i < tasks->count; i++) release(tasks->list[i], to);
    free(tasks->list);
    *tasks = (tasks_t){0};
}
