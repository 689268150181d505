/* A small HTTP server in a thread, for GET /metrics only.
 * SPDX-License-Identifier: Apache-2.0 */
#include "metrics.h"

#include "visitor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Connections at one time; connections that are accepted before others are served again; how often
 * the counters are collected, for which the server's work waits. */
enum { PLACES = 16, ACCEPTS = 16, INTERVAL_MS = 20 };

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* NULL: no memory. The text may grow between two calls. */
static struct text *collect(dtrain_server_t *server) {
    struct text *text = calloc(1, sizeof *text);
    size_t size = 16384;
    for (char *grown; text != NULL && (grown = realloc(text->bytes, size)) != NULL;) {
        text->bytes = grown;
        text->users = 1;
        text->length = dtrain_stats_server(server, text->bytes, size);
        if (text->length < size) return text;
        size = text->length + 4096;
    }
    if (text != NULL) text->users = 1;
    text_release(text);
    return NULL;
}

struct visitors {
    struct visitor all[PLACES];
    int64_t collect_at_ms; /* not before */
};

static int any_waits(const struct visitors *visitors) {
    for (int i = 0; i < PLACES; i++)
        if (visitors->all[i].state == WAITING) return 1;
    return 0;
}

/* A free place; if there is none, that of the oldest one whose request has not come: it is the most
 * likely one to be nobody's, and a genuine request comes at once. */
static struct visitor *place(struct visitors *visitors) {
    struct visitor *oldest = &visitors->all[0];
    for (int i = 0; i < PLACES; i++) {
        struct visitor *one = &visitors->all[i];
        if (one->state == FREE) return one;
        const int reads = one->state == READING, oldest_reads = oldest->state == READING;
        if (reads != oldest_reads ? reads : one->deadline_ms < oldest->deadline_ms) oldest = one;
    }
    visitor_end(oldest);
    return oldest;
}

static void accept_some(const struct metrics *metrics, struct visitors *visitors) {
    for (int i = 0; i < ACCEPTS; i++) {
        const int fd = accept4(metrics->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) return;
        struct visitor *visitor = place(visitors);
        visitor_begin(visitor, fd, now_ms());
        visitor_go_on(visitor, &metrics->token);
    }
}

static void answer_all(const struct metrics *metrics, struct visitors *visitors) {
    const int64_t now = now_ms();
    if (now < visitors->collect_at_ms || !any_waits(visitors)) return;
    struct text *text = collect(metrics->server);
    for (int i = 0; i < PLACES; i++) {
        struct visitor *one = &visitors->all[i];
        if (one->state != WAITING) continue;
        visitor_answer(one, text);
        visitor_go_on(one, &metrics->token);
    }
    text_release(text);
    visitors->collect_at_ms = now_ms() + INTERVAL_MS;
}

/* Returns how long to wait, in milliseconds; -1: until something happens. */
static int end_late_ones(struct visitors *visitors) {
    const int64_t now = now_ms();
    int64_t next = any_waits(visitors) ? visitors->collect_at_ms : INT64_MAX;
    for (int i = 0; i < PLACES; i++) {
        struct visitor *one = &visitors->all[i];
        if (one->state == FREE) continue;
        if (one->deadline_ms <= now)
            visitor_end(one);
        else if (one->deadline_ms < next)
            next = one->deadline_ms;
    }
    if (next == INT64_MAX) return -1;
    return next > now ? (int)(next - now) : 0;
}

static void *serve(void *self) {
    const struct metrics *metrics = self;
    struct visitors visitors = {0};
    /* Of this thread alone: a flood of connections must not slow the server's work. */
    (void)setpriority(PRIO_PROCESS, 0, 10);
    for (;;) {
        struct pollfd fds[PLACES + 2] = {{metrics->stop, POLLIN, 0},
                                         {metrics->listener, POLLIN, 0}};
        const int wait = end_late_ones(&visitors);
        for (int i = 0; i < PLACES; i++) {
            const struct visitor *one = &visitors.all[i];
            const int fd = one->state == READING || one->state == ANSWERING ? one->fd : -1;
            fds[i + 2] = (struct pollfd){fd, one->state == READING ? POLLIN : POLLOUT, 0};
        }
        if (poll(fds, PLACES + 2, wait) < 0 && errno != EINTR) break;
        if (fds[0].revents != 0) break;
        for (int i = 0; i < PLACES; i++)
            if (fds[i + 2].revents != 0) visitor_go_on(&visitors.all[i], &metrics->token);
        if (fds[1].revents != 0) accept_some(metrics, &visitors);
        answer_all(metrics, &visitors);
    }
    for (int i = 0; i < PLACES; i++) visitor_end(&visitors.all[i]);
    return NULL;
}

static int failed(const char *address, const char *why) {
    fprintf(stderr, "dtrain-server: --metrics %s: %s\n", address, why);
    return -1;
}

static int is_loopback(const struct sockaddr *address) {
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

static int listen_at(const char *address, int with_token) {
    char host[256] = "127.0.0.1";
    const char *colon = strrchr(address, ':'), *port = colon != NULL ? colon + 1 : address;
    if (colon != NULL) snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    char *end;
    long number = strtol(port, &end, 10);
    if (end == port || *end != 0 || number < 0 || number > 65535)
        return failed(address, "not a port from 0 to 65535");
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int error = getaddrinfo(host, port, &hints, &found);
    if (error != 0) return failed(address, gai_strerror(error));
    if (!with_token && !is_loopback(found->ai_addr)) {
        freeaddrinfo(found);
        return failed(address,
                      "other hosts may reach this address; say with --metrics-token who is "
                      "to be answered");
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1;
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    int bound =
        fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0;
    freeaddrinfo(found);
    if (bound) return fd;
    failed(address, strerror(errno));
    if (fd >= 0) close(fd);
    return -1;
}

static void print_address(int listener) {
    struct sockaddr_storage name;
    socklen_t length = sizeof name;
    char host[INET6_ADDRSTRLEN] = "?", port[8] = "?";
    if (getsockname(listener, (struct sockaddr *)&name, &length) == 0)
        getnameinfo((struct sockaddr *)&name, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    printf("metrics: http://%s:%s/metrics\n", host, port);
    fflush(stdout);
}

int metrics_listen(struct metrics *metrics, const char *address) {
    metrics->listener = listen_at(address, metrics->token.length > 0);
    return metrics->listener < 0 ? -1 : 0;
}

int metrics_start(struct metrics *metrics, dtrain_server_t *server) {
    metrics->server = server;
    metrics->stop = eventfd(0, EFD_CLOEXEC);
    int error = metrics->stop < 0 ? errno : pthread_create(&metrics->thread, NULL, serve, metrics);
    if (error != 0) return failed("", strerror(error));
    metrics->started = 1;
    print_address(metrics->listener);
    return 0;
}

void metrics_stop(struct metrics *metrics) {
    if (metrics->started) {
        eventfd_write(metrics->stop, 1);
        pthread_join(metrics->thread, NULL);
    }
    if (metrics->stop >= 0) close(metrics->stop);
    if (metrics->listener >= 0) close(metrics->listener);
}
