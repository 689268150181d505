/* The token that requests for metrics must have, as Prometheus sends it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_SERVER_TOKEN_H
#define DTRAIN_SERVER_TOKEN_H
#include <stddef.h>

enum { TOKEN_MOST = 1024 };

struct token {
    size_t length; /* 0: none is asked for */
    char text[TOKEN_MOST];
};

/* The first line of a file to which only its owner has access. Returns 0, or -1 with the reason on
 * stderr. */
int token_read(struct token *token, const char *path);

#endif
