/* One connection to the metrics port: its request, and the answer to it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_SERVER_VISITOR_H
#define DTRAIN_SERVER_VISITOR_H
#include "request.h"

enum { PATIENCE_MS = 2000 };

/* The counters at one moment, for all who wait for them. */
struct text {
    int users;
    size_t length;
    char *bytes;
};
void text_release(struct text *text); /* NULL: does nothing */

enum visitor_state { FREE, READING, WAITING /* for the counters */, ANSWERING };

struct visitor {
    enum visitor_state state;
    int fd;
    int64_t deadline_ms;
    struct request request;
    char head[200]; /* of the answer */
    size_t head_length, sent;
    struct text *text; /* NULL: the answer is its head alone */
};
_Static_assert(sizeof(struct visitor) <= 512, "what anybody can make the server hold");

/* fd: does not block. */
void visitor_begin(struct visitor *visitor, int fd, int64_t now_ms);
/* Goes on as far as the socket lets it; FREE: it is over, and fd is closed. */
void visitor_go_on(struct visitor *visitor, const struct token *token);
/* Gives a WAITING one the counters; NULL: there was no memory. */
void visitor_answer(struct visitor *visitor, struct text *text);
void visitor_end(struct visitor *visitor);

#endif
