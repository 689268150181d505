/* Takes the head of an HTTP request apart as it arrives, without keeping it (RFC 9112; the token as
 * in RFC 6750, section 2.1).
 * SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

#include <string.h>

enum { NAME, BEFORE_SCHEME, SCHEME, BEFORE_TOKEN, TOKEN, OTHER }; /* phases of a line */

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }
static int is_blank(char c) { return c == ' ' || c == '\t'; }

/* The time that it takes says nothing about the token. */
static void compare(struct request *request, const struct token *token, char c) {
    const size_t at = request->matched < token->length ? request->matched : 0;
    request->different |= (uint8_t)(token->text[at] ^ c);
    request->matched++;
}

static void end_token(struct request *request, const struct token *token) {
    const size_t wrong = request->different | (request->matched ^ token->length);
    request->has_token = wrong == 0;
    request->phase = OTHER;
}

static void begin_line(struct request *request) {
    request->phase = NAME;
    request->matched = 0;
}

/* Goes on to `next` after the last byte of a word, which letters of any case may spell. */
static void match(struct request *request, const char *word, char c, uint8_t next) {
    const char wanted = word[request->matched];
    request->matched++;
    if (lower(c) != wanted)
        request->phase = OTHER;
    else if (word[request->matched] == 0)
        request->phase = next;
}

static void take(struct request *request, const struct token *token, char c) {
    if (request->phase == TOKEN && (is_blank(c) || c == '\r' || c == '\n'))
        end_token(request, token);
    if (c == '\n') return begin_line(request);
    if (request->phase == NAME && !request->seen)
        match(request, "authorization:", c, BEFORE_SCHEME);
    else if (request->phase == BEFORE_SCHEME && !is_blank(c)) {
        request->seen = 1;
        request->matched = 0;
        request->phase = SCHEME;
        match(request, "bearer ", c, BEFORE_TOKEN);
    } else if (request->phase == SCHEME)
        match(request, "bearer ", c, BEFORE_TOKEN);
    else if (request->phase == BEFORE_TOKEN && c != ' ') {
        request->matched = 0;
        request->different = 0;
        request->phase = TOKEN;
        compare(request, token, c);
    } else if (request->phase == TOKEN)
        compare(request, token, c);
}

enum request_state request_take(struct request *request, const struct token *token,
                                const char *bytes, size_t length) {
    static const char end[] = "\r\n\r\n";
    for (size_t i = 0; i < length; i++) {
        if (request->length == MOST_REQUEST) return REQUEST_BAD;
        if (request->length < sizeof request->start) request->start[request->length] = bytes[i];
        /* The first line asks for something, and names nothing. */
        if (request->length++ == 0) request->phase = OTHER;
        take(request, token, bytes[i]);
        request->ending = bytes[i] == end[request->ending] ? request->ending + 1 : bytes[i] == '\r';
        if (request->ending == 4) return REQUEST_WHOLE;
    }
    return REQUEST_GOES_ON;
}

int request_is_get(const struct request *request) { return memcmp(request->start, "GET ", 4) == 0; }

int request_is_metrics(const struct request *request) {
    const char after = request->start[12];
    return memcmp(request->start, "GET /metrics", 12) == 0 && (after == ' ' || after == '?');
}
