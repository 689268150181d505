/* Takes the head of an HTTP request apart as it arrives, without keeping it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_SERVER_REQUEST_H
#define DTRAIN_SERVER_REQUEST_H
#include "token.h"

#include <stdint.h>

enum { MOST_REQUEST = 4096 };

/* Zero to begin with. Anybody can make the server hold one, so it is small. */
struct request {
    char start[16];    /* the first bytes, which say what is asked for */
    uint16_t length;   /* bytes so far */
    uint8_t ending;    /* bytes of the empty line that ends the head */
    uint8_t phase;     /* of the line that is being read */
    uint16_t matched;  /* bytes of the name, the scheme or the token in this line */
    uint8_t different; /* whether the token differs */
    uint8_t has_token; /* it was there, and right */
    uint8_t seen;      /* an Authorization line: the first one counts */
};

enum request_state { REQUEST_GOES_ON, REQUEST_WHOLE, REQUEST_BAD };

/* Takes bytes that have arrived. BAD: the head is longer than MOST_REQUEST bytes. */
enum request_state request_take(struct request *request, const struct token *token,
                                const char *bytes, size_t length);
/* Of a whole one. */
int request_is_get(const struct request *request);     /* of whatever */
int request_is_metrics(const struct request *request); /* GET /metrics */

#endif
