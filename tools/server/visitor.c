/* One connection to the metrics port: its request, and the answer to it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "visitor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void text_release(struct text *text) {
    if (text == NULL || --text->users > 0) return;
    free(text->bytes);
    free(text);
}

void visitor_begin(struct visitor *visitor, int fd, int64_t now_ms) {
    *visitor = (struct visitor){.state = READING, .fd = fd, .deadline_ms = now_ms + PATIENCE_MS};
}

void visitor_end(struct visitor *visitor) {
    if (visitor->state == FREE) return;
    text_release(visitor->text);
    shutdown(visitor->fd, SHUT_WR);
    close(visitor->fd);
    visitor->state = FREE;
}

static void answer(struct visitor *visitor, const char *status, const char *more,
                   struct text *text) {
    const size_t length = text != NULL ? text->length : 0;
    const int written = snprintf(visitor->head, sizeof visitor->head,
                                 "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4\r\n"
                                 "Content-Length: %zu\r\n%sConnection: close\r\n\r\n",
                                 status, length, more);
    visitor->head_length = (size_t)written;
    visitor->text = text;
    visitor->state = ANSWERING;
}

static void decide(struct visitor *visitor, const struct token *token) {
    const struct request *request = &visitor->request;
    if (token->length > 0 && !request->has_token)
        answer(visitor, "401 Unauthorized", "WWW-Authenticate: Bearer\r\n", NULL);
    else if (request_is_metrics(request))
        visitor->state = WAITING;
    else
        answer(visitor, request_is_get(request) ? "404 Not Found" : "400 Bad Request", "", NULL);
}

void visitor_answer(struct visitor *visitor, struct text *text) {
    if (text != NULL) text->users++;
    answer(visitor, text != NULL ? "200 OK" : "503 Service Unavailable", "", text);
}

static void read_some(struct visitor *visitor, const struct token *token) {
    char bytes[MOST_REQUEST];
    const ssize_t n = recv(visitor->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return visitor_end(visitor);
    switch (request_take(&visitor->request, token, bytes, (size_t)n)) {
    case REQUEST_GOES_ON: break;
    case REQUEST_WHOLE: decide(visitor, token); break;
    case REQUEST_BAD: visitor_end(visitor); break;
    }
}

static void write_some(struct visitor *visitor) {
    for (;;) {
        const size_t body = visitor->text != NULL ? visitor->text->length : 0;
        const int in_head = visitor->sent < visitor->head_length;
        const size_t at = in_head ? visitor->sent : visitor->sent - visitor->head_length;
        const size_t left = (in_head ? visitor->head_length : body) - at;
        if (left == 0) return visitor_end(visitor);
        const char *from = in_head ? visitor->head : visitor->text->bytes;
        const ssize_t n = send(visitor->fd, from + at, left, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n < 0) return visitor_end(visitor);
        visitor->sent += (size_t)n;
    }
}

void visitor_go_on(struct visitor *visitor, const struct token *token) {
    if (visitor->state == READING) read_some(visitor, token);
    if (visitor->state == ANSWERING) write_some(visitor);
}
