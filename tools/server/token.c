/* Reads a token.
 * SPDX-License-Identifier: Apache-2.0 */
#include "token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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
