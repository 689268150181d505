/* The processes of an agent, with their pipes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_TASKS_H
#define RUN_TASKS_H
#include "channel.h"
#include "child.h"

#include <poll.h>

enum { TASK_POLLED = 4 };

typedef struct task {
    uint32_t number; /* the launcher's for the process */
    child_t child;
    bool told;         /* of its end */
    int out, err;      /* non-blocking; -1: ended */
    int input;         /* a pipe, non-blocking; -1: none or closed */
    size_t begin, end; /* of `given`: what the input has not taken */
    char given[FRAME_BYTES];
} task_t;

typedef struct tasks {
    task_t **list;
    int count;
} tasks_t;

/* Starts one. On failure it says so in a frame. */
void tasks_start(tasks_t *tasks, channel_t *to, uint32_t number, const recipe_t *recipe,
                 bool with_input, int listener);
task_t *tasks_find(const tasks_t *tasks, uint32_t number); /* NULL: there is none */
void task_give(task_t *task, channel_t *to, const frame_t *frame);
/* quiet: no output is read, since too much of it is unsent. */
void task_prepare(const task_t *task, bool quiet, struct pollfd polled[TASK_POLLED]);
void task_handle(task_t *task, channel_t *to, const struct pollfd polled[TASK_POLLED]);
/* Tells of the ends of processes, after what they have written. */
void tasks_reap(tasks_t *tasks, channel_t *to);
/* Forgets one; kills what it has left running, and passes its last output on. */
void tasks_release(tasks_t *tasks, channel_t *to, uint32_t number);
/* Kills what is left, and passes its last output on. */
void tasks_end(tasks_t *tasks, channel_t *to);

#endif
