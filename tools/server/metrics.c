/* A small HTTP server in a thread, for GET /metrics only.
 * SPDX-License-Identifier: Apache-2.0 */
#include "metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_REQUEST = 4096, PATIENCE_MS = 2000 };

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits until the socket is ready for `events`. Returns 0, or -1 when the time is over or the
 * thread must end. */
static int wait_for(const struct metrics *metrics, int fd, short events, int64_t deadline_ms) {
    struct pollfd fds[] = {{fd, events, 0}, {metrics->stop, POLLIN, 0}};
    for (;;) {
        int64_t left = deadline_ms < 0 ? -1 : deadline_ms - now_ms();
        if (deadline_ms >= 0 && left <= 0) return -1;
        int ready = poll(fds, 2, (int)left);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0 || fds[1].revents != 0) return -1;
        return 0;
    }
}

/* Reads the head of a request, NUL-terminated; -1: none came. */
static int read_head(const struct metrics *metrics, int fd, char *head, int64_t deadline_ms) {
    size_t length = 0;
    while (length < MOST_REQUEST) {
        if (wait_for(metrics, fd, POLLIN, deadline_ms) != 0) return -1;
        ssize_t n = recv(fd, head + length, MOST_REQUEST - length, 0);
        if (n <= 0) return -1;
        length += (size_t)n;
        head[length] = 0;
        if (strstr(head, "\r\n\r\n") != NULL) return 0;
    }
    return -1;
}

static void send_all(const struct metrics *metrics, int fd, const char *text, size_t length,
                     int64_t deadline_ms) {
    while (length > 0 && wait_for(metrics, fd, POLLOUT, deadline_ms) == 0) {
        ssize_t n = send(fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR) return;
        if (n <= 0) continue;
        text += n;
        length -= (size_t)n;
    }
}

/* Returns the whole text; NULL: no memory. The text may grow between two calls. */
static char *metrics_text(dtrain_server_t *server, size_t *length_p) {
    size_t size = 16384;
    for (char *text = NULL, *grown; (grown = realloc(text, size)) != NULL;) {
        text = grown;
        *length_p = dtrain_stats_server(server, text, size);
        if (*length_p < size) return text;
        size = *length_p + 4096;
    }
    return NULL;
}

static void answer(const struct metrics *metrics, int fd) {
    char head[MOST_REQUEST + 1], line[200];
    int64_t deadline_ms = now_ms() + PATIENCE_MS;
    if (read_head(metrics, fd, head, deadline_ms) != 0) return;
    size_t length = 0;
    int admitted = token_fits(&metrics->token, head);
    int known = strncmp(head, "GET /metrics ", 13) == 0 || strncmp(head, "GET /metrics?", 13) == 0;
    char *text = admitted && known ? metrics_text(metrics->server, &length) : NULL;
    const char *status = !admitted                       ? "401 Unauthorized"
                         : text != NULL                  ? "200 OK"
                         : known                         ? "503 Service Unavailable"
                         : strncmp(head, "GET ", 4) == 0 ? "404 Not Found"
                                                         : "400 Bad Request";
    int written = snprintf(line, sizeof line,
                           "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4\r\n"
                           "Content-Length: %zu\r\n%sConnection: close\r\n\r\n",
                           status, length, admitted ? "" : "WWW-Authenticate: Bearer\r\n");
    send_all(metrics, fd, line, (size_t)written, deadline_ms);
    if (text != NULL) send_all(metrics, fd, text, length, deadline_ms);
    free(text);
}

static void *serve(void *self) {
    const struct metrics *metrics = self;
    while (wait_for(metrics, metrics->listener, POLLIN, -1) == 0) {
        int fd = accept4(metrics->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) continue;
        answer(metrics, fd);
        shutdown(fd, SHUT_WR);
        close(fd);
    }
    return NULL;
}

static int failed(const char *address, const char *why) {
    fprintf(stderr, "dtrain-server: --metrics %s: %s\n", address, why);
    return -1;
}

static int listen_at(const char *address) {
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
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    int bound = fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, 8) == 0;
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
    metrics->listener = listen_at(address);
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
