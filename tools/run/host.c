/* Speaks with an agent over ssh.
 * SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include "agent.h"
#include "ssh.h"

#include "dtrain.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((format(printf, 2, 3))) static void lose(host_t *host, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(host->why, sizeof host->why, format, args);
    va_end(args);
    host->state = HOST_LOST;
    host_close(host);
}

void host_lose(host_t *host, const char *why) { lose(host, "%s", why); }

void host_open(host_t *host, const char *name, const options_t *options, double now) {
    int to[2] = {-1, -1}, from[2] = {-1, -1}, errors = -1;
    recipe_t recipe = {0};
    *host = (host_t){.name = name, .state = HOST_CONNECTING, .opened = now, .heard = now};
    host->channel.from = host->channel.to = host->complaints.from = -1;
    ssh_command(options, name, &recipe.arguments);
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0 ||
        stream_open(&host->complaints, -1, false, "", &errors) != 0) {
        lose(host, "%s", strerror(errno));
        return;
    }
    channel_open(&host->channel, from[0], to[1]);
    failure_t failure = child_start(&host->ssh, &recipe, (int[]){to[0], from[1], errors}, -1);
    close(to[0]);
    close(from[1]);
    close(errors);
    if (failure.step == 0) failure = child_confirm(&host->ssh);
    if (failure.step != 0)
        lose(host, "cannot run %s: %s", recipe.arguments.list[0], strerror(failure.error));
    recipe_free(&recipe);
}

void host_send_secret(host_t *host, const char *secret) {
    channel_send(&host->channel, FRAME_SECRET, 0, secret, strlen(secret));
}

void host_listen(host_t *host, bool everywhere) {
    channel_send_numbers(&host->channel, FRAME_LISTEN, 0, everywhere, 0);
}

void host_meet(host_t *host) { channel_send(&host->channel, FRAME_MEET, 0, NULL, 0); }

void host_place(host_t *host, const char *text, size_t length) {
    channel_send(&host->channel, FRAME_PLACE, 0, text, length);
}

void host_release(host_t *host, int number) {
    channel_send(&host->channel, FRAME_RELEASE, (uint32_t)number, NULL, 0);
}

void host_start(host_t *host, int number, const recipe_t *recipe, bool input, bool listener) {
    char flags[2];
    size_t size, count = 0;
    char *bytes = recipe_pack(recipe, &size);
    channel_send(&host->channel, FRAME_RECIPE, (uint32_t)number, bytes, size);
    free(bytes);
    if (input) flags[count++] = START_INPUT;
    if (listener) flags[count++] = START_LISTENER;
    channel_send(&host->channel, FRAME_START, (uint32_t)number, flags, count);
}

void host_signal(host_t *host, int number, int signal) {
    channel_send_numbers(&host->channel, FRAME_SIGNAL, (uint32_t)number, signal, 0);
}

void host_input(host_t *host, int number, const char *bytes, size_t length) {
    channel_send(&host->channel, FRAME_INPUT, (uint32_t)number, bytes, length);
}

void host_finish(host_t *host) {
    host->finishing = true;
    channel_send(&host->channel, FRAME_FINISH, 0, NULL, 0);
}

/* The agent's version must be this one's: the frames are not made to be understood by others. */
static void greet(host_t *host, const frame_t *frame) {
    char text[FRAME_BYTES + 1];
    memcpy(text, frame->bytes, frame->length);
    text[frame->length] = 0;
    const char *connection = text + strlen(text) + (strlen(text) < frame->length);
    if (strcmp(text, dtrain_version_string()) != 0) {
        lose(host, "its dtrain-run is of version %.40s, this one of %s", text,
             dtrain_version_string());
        return;
    }
    /* SSH_CONNECTION: the client's address and port, the server's address and port. */
    if (sscanf(connection, "%63s %*s %63s", host->launcher, host->address) != 2)
        host->launcher[0] = host->address[0] = 0;
    host->state = HOST_READY;
    host->ready = true;
}

static void take_frame(host_t *host, const frame_t *frame, host_frame_fn *take, void *arg) {
    int32_t port;
    switch (frame->kind) {
    case FRAME_HELLO: greet(host, frame); break;
    case FRAME_ALIVE: break;
    case FRAME_LISTENING:
        if (frame_numbers(frame, 1, &port)) host->port = port;
        break;
    default: take(arg, host, frame);
    }
}

/* ssh, which has closed its output, says why, and ends. */
static void explain_end(host_t *host) {
    struct pollfd polled = {.fd = host->complaints.from, .events = POLLIN};
    while (host->complaints.from >= 0 && poll(&polled, 1, 2000) > 0) stream_read(&host->complaints);
    stream_finish(&host->complaints);
    for (int i = 0; i < 100 && !child_poll(&host->ssh); i++) poll(NULL, 0, 10);
    const bool missing = host->ssh.ended && host->ssh.status == 127;
    const char *last = host->complaints.last;
    if (missing && host->state == HOST_CONNECTING)
        lose(host, "dtrain-run is neither where it is here nor on the PATH there%s%s",
             last[0] != 0 ? ": " : "", last);
    else if (last[0] != 0)
        lose(host, "%s", last);
    else
        lose(host, "ssh has ended");
}

static bool is_open(const host_t *host) {
    return host->state == HOST_CONNECTING || host->state == HOST_READY;
}

void host_prepare(const host_t *host, struct pollfd polled[HOST_POLLED]) {
    const bool unsent = channel_unsent(&host->channel) > 0;
    for (int i = 0; i < HOST_POLLED; i++) polled[i] = (struct pollfd){.fd = -1};
    if (!is_open(host)) return;
    polled[0] = (struct pollfd){.fd = host->channel.from, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = unsent ? host->channel.to : -1, .events = POLLOUT};
    polled[2] = (struct pollfd){.fd = host->complaints.from, .events = POLLIN};
}

void host_handle(host_t *host, const struct pollfd polled[HOST_POLLED], double now,
                 host_frame_fn *take, void *arg) {
    frame_t frame;
    if (polled[2].revents != 0) stream_read(&host->complaints);
    if (polled[0].revents != 0) {
        host->heard = now;
        const bool open = channel_read(&host->channel);
        host->greeted = host->greeted || channel_skip(&host->channel, agent_greeting);
        while (host->greeted && is_open(host) && channel_next(&host->channel, &frame))
            take_frame(host, &frame, take, arg);
        if (is_open(host) && host->channel.from < 0)
            lose(host, "what it says cannot be understood");
        else if (!open && host->finishing)
            host->state = HOST_ENDED;
        else if (!open && is_open(host))
            explain_end(host);
    }
    /* ssh may have ended: what it has said comes first. */
    if (polled[1].revents != 0) (void)channel_flush(&host->channel);
}

void host_close(host_t *host) {
    channel_close(&host->channel);
    stream_finish(&host->complaints);
    child_release(&host->ssh);
}
