/* Reads a token, and looks for it in the head of an HTTP request (RFC 6750, section 2.1).
 * SPDX-License-Identifier: Apache-2.0 */
#include "token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static int failed(const char *path, const char *why) {
    fprintf(stderr, "dtrain-server: --metrics-token %s: %s\n", path, why);
    return -1;
}

int token_read(struct token *token, const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat file;
    if (fd < 0) return failed(path, strerror(errno));
    ssize_t n = fstat(fd, &file) == 0 ? read(fd, token->text, sizeof token->text) : -1;
    int error = errno;
    close(fd);
    if (n < 0) return failed(path, strerror(error));
    if ((file.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return failed(path, "users other than its owner have access to it; chmod 600 it");
    token->length = (size_t)n;
    const char *end = memchr(token->text, '\n', token->length);
    if (end != NULL) token->length = (size_t)(end - token->text);
    if (token->length > 0 && token->text[token->length - 1] == '\r') token->length--;
    if (token->length == 0) return failed(path, "its first line is empty");
    if ((size_t)n == sizeof token->text && end == NULL)
        return failed(path, "its first line is longer than 1023 bytes");
    return 0;
}

/* The same time whatever differs. */
static int equal(const char *a, const char *b, size_t length) {
    unsigned char different = 0;
    for (size_t i = 0; i < length; i++) different |= (unsigned char)(a[i] ^ b[i]);
    return different == 0;
}

int token_fits(const struct token *token, const char *head) {
    static const char name[] = "\r\nAuthorization:", scheme[] = "Bearer ";
    if (token->length == 0) return 1;
    const char *value = strcasestr(head, name);
    if (value == NULL) return 0;
    value += strlen(name);
    value += strspn(value, " \t");
    if (strncasecmp(value, scheme, strlen(scheme)) != 0) return 0;
    value += strlen(scheme);
    value += strspn(value, " ");
    size_t length = strcspn(value, " \t\r\n");
    return length == token->length && equal(value, token->text, length);
}
