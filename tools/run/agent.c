/* Does what the launcher's frames say.
 * SPDX-License-Identifier: Apache-2.0 */
#include "agent.h"

#include "clock.h"
#include "meeting.h"
#include "output.h"
#include "rendezvous.h"
#include "secret.h"
#include "signals.h"
#include "tasks.h"

#include "dtrain.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double alive_every = 1; /* seconds */
static const double patience = 5;    /* seconds for the last frames to be sent */
enum { FIXED = 3, UNSENT_LIMIT = 1 << 20, MAX_RECIPE = 64 << 20 };

typedef struct agent {
    channel_t launcher;
    int signals;
    tasks_t tasks;
    struct pollfd *polled; /* signals, the channel's two ends, then those of the tasks */
    char *recipe;          /* the pieces of the next one that have come */
    size_t recipe_size;
    char secret[SECRET_PATH]; /* empty: none */
    meeting_t meeting;        /* of an elastic job */
    int listener;             /* for the process that inherits it; -1: none */
    double heard, told, looked;
    bool ending;
} agent_t;

static void greet(channel_t *launcher) {
    char hello[FRAME_BYTES];
    const char *connection = getenv("SSH_CONNECTION");
    int length = snprintf(hello, sizeof hello, "%s%c%.300s", dtrain_version_string(), 0,
                          connection != NULL ? connection : "");
    channel_send(launcher, FRAME_HELLO, 0, hello, (size_t)length);
}

static void take_secret(agent_t *agent, const frame_t *frame) {
    char secret[SECRET_LENGTH + 1] = "";
    if (frame->length <= SECRET_LENGTH) memcpy(secret, frame->bytes, frame->length);
    if (secret[0] == 0 || secret_store(secret, agent->secret) != 0) {
        output_say("cannot store the job's secret: %s", strerror(errno));
        agent->ending = true;
    }
    explicit_bzero(secret, sizeof secret);
}

static void listen_for_ranks(agent_t *agent, const frame_t *frame) {
    int32_t everywhere = 0, port = 0;
    frame_numbers(frame, 1, &everywhere);
    agent->listener = rendezvous_listen(everywhere != 0, &port);
    if (agent->listener >= 0) {
        channel_send_numbers(&agent->launcher, FRAME_LISTENING, 0, port, 0);
        return;
    }
    output_say("cannot listen for the ranks: %s", strerror(errno));
    agent->ending = true;
}

static void open_meeting(agent_t *agent) {
    if (meeting_open(&agent->meeting) != 0) agent->ending = true;
}

/* Before a process's end is reported: the launcher then knows what the process has written. */
static bool tell_place(agent_t *agent) {
    const meeting_t *meeting = &agent->meeting;
    if (!meeting_look(&agent->meeting)) return false;
    channel_send(&agent->launcher, FRAME_PLACE, 0, meeting->text, meeting->length);
    return true;
}

/* What a process here has just written is newer, and goes to all hosts. */
static void take_place(agent_t *agent, const frame_t *frame) {
    if (!tell_place(agent)) meeting_write(&agent->meeting, frame->bytes, frame->length);
}

static void take_recipe(agent_t *agent, const frame_t *frame) {
    if (agent->recipe_size + frame->length > MAX_RECIPE) {
        output_say("a command line is longer than 64 MiB");
        agent->ending = true;
        return;
    }
    agent->recipe = own_memory(agent->recipe, agent->recipe_size + frame->length);
    memcpy(agent->recipe + agent->recipe_size, frame->bytes, frame->length);
    agent->recipe_size += frame->length;
}

static void start(agent_t *agent, const frame_t *frame) {
    recipe_t recipe;
    const bool input = memchr(frame->bytes, START_INPUT, frame->length) != NULL;
    const bool listens = memchr(frame->bytes, START_LISTENER, frame->length) != NULL;
    if (recipe_unpack(&recipe, agent->recipe, agent->recipe_size)) {
        if (agent->secret[0] != 0) recipe_set(&recipe, "DTRAIN_SECRET_FILE", agent->secret);
        if (agent->meeting.folder[0] != 0)
            recipe_set(&recipe, "DTRAIN_RENDEZVOUS", agent->meeting.url);
        if (listens) recipe_set_number(&recipe, "DTRAIN_LISTEN_FD", agent->listener);
        tasks_start(&agent->tasks, &agent->launcher, frame->process, &recipe, input,
                    listens ? agent->listener : -1);
        if (listens && agent->listener >= 0) close(agent->listener); /* it has inherited it */
        if (listens) agent->listener = -1;
    } else {
        channel_send_numbers(&agent->launcher, FRAME_FAILED, frame->process, FAILED_START, EINVAL);
    }
    recipe_free(&recipe);
    agent->recipe_size = 0;
}

static void take_frame(agent_t *agent, const frame_t *frame) {
    task_t *task = tasks_find(&agent->tasks, frame->process);
    int32_t number;
    switch (frame->kind) {
    case FRAME_SECRET: take_secret(agent, frame); break;
    case FRAME_LISTEN: listen_for_ranks(agent, frame); break;
    case FRAME_RECIPE: take_recipe(agent, frame); break;
    case FRAME_START: start(agent, frame); break;
    case FRAME_SIGNAL:
        if (task != NULL && frame_numbers(frame, 1, &number)) child_signal(&task->child, number);
        break;
    case FRAME_INPUT:
        if (task != NULL) task_give(task, &agent->launcher, frame);
        break;
    case FRAME_PING: break;
    case FRAME_MEET: open_meeting(agent); break;
    case FRAME_PLACE: take_place(agent, frame); break;
    case FRAME_RELEASE: tasks_release(&agent->tasks, &agent->launcher, frame->process); break;
    default: agent->ending = true; /* FINISH */
    }
}

static void take_frames(agent_t *agent, double now) {
    frame_t frame;
    const bool open = channel_read(&agent->launcher);
    agent->heard = now;
    while (!agent->ending && channel_next(&agent->launcher, &frame)) take_frame(agent, &frame);
    if (!open) agent->ending = true;
}

static void handle_signals(agent_t *agent) {
    for (int number; (number = signals_take(agent->signals)) != 0;)
        if (number != SIGCHLD) agent->ending = true;
}

static void wait_for_events(agent_t *agent) {
    const size_t count = FIXED + TASK_POLLED * (size_t)agent->tasks.count;
    const size_t unsent = channel_unsent(&agent->launcher);
    agent->polled = own_memory(agent->polled, count * sizeof *agent->polled);
    struct pollfd *polled = agent->polled;
    polled[0] = (struct pollfd){.fd = agent->signals, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = agent->launcher.from, .events = POLLIN};
    polled[2] = (struct pollfd){.fd = unsent > 0 ? agent->launcher.to : -1, .events = POLLOUT};
    for (int i = 0; i < agent->tasks.count; i++)
        task_prepare(agent->tasks.list[i], unsent > UNSENT_LIMIT, polled + FIXED + TASK_POLLED * i);
    if (poll(polled, count, agent->meeting.folder[0] != 0 ? MEETING_LOOKS : 500) < 0) return;
    const int there = agent->tasks.count; /* more may come meanwhile */
    for (int i = 0; i < there; i++)
        task_handle(agent->tasks.list[i], &agent->launcher, polled + FIXED + TASK_POLLED * i);
    if (polled[0].revents != 0) handle_signals(agent);
    if (polled[1].revents != 0) take_frames(agent, clock_now());
    tell_place(agent);
    tasks_reap(&agent->tasks, &agent->launcher);
}

static void look_at_clock(agent_t *agent, double limit) {
    const double now = clock_now();
    agent->heard += clock_pause(agent->looked, now);
    agent->looked = now;
    if (now > agent->heard + limit) agent->ending = true;
    if (now < agent->told + alive_every) return;
    agent->told = now;
    if (channel_unsent(&agent->launcher) == 0)
        channel_send(&agent->launcher, FRAME_ALIVE, 0, NULL, 0);
}

static void send_the_rest(agent_t *agent) {
    const double end = clock_now() + patience;
    while (channel_flush(&agent->launcher) && channel_unsent(&agent->launcher) > 0 &&
           clock_now() < end)
        poll(&(struct pollfd){.fd = agent->launcher.to, .events = POLLOUT}, 1, 100);
}

int agent_run(double limit) {
    agent_t agent = {.signals = signals_open(), .listener = -1, .looked = clock_now()};
    agent.heard = agent.looked;
    if (agent.signals < 0 || write(STDOUT_FILENO, agent_greeting, strlen(agent_greeting)) < 0)
        return 1;
    channel_open(&agent.launcher, STDIN_FILENO, STDOUT_FILENO);
    greet(&agent.launcher);
    while (!agent.ending) {
        wait_for_events(&agent);
        look_at_clock(&agent, limit);
        if (!channel_flush(&agent.launcher)) agent.ending = true;
    }
    tasks_end(&agent.tasks, &agent.launcher);
    meeting_close(&agent.meeting);
    send_the_rest(&agent);
    channel_close(&agent.launcher);
    free(agent.polled);
    free(agent.recipe);
    return 0;
}
