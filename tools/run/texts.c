/* Grows lists of texts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *own_memory(void *old, size_t size) {
    void *memory = realloc(old, size > 0 ? size : 1);
    if (memory != NULL) return memory;
    fputs("dtrain-run: out of memory\n", stderr);
    exit(1); /* the processes that it has started end with it */
}

static char *copy_of(const char *text, size_t size) {
    char *copy = own_memory(NULL, size + 1);
    memcpy(copy, text, size);
    copy[size] = 0;
    return copy;
}

void texts_add(texts_t *texts, const char *text) {
    texts->list = own_memory(texts->list, (texts->count + 2) * sizeof *texts->list);
    texts->list[texts->count++] = copy_of(text, strlen(text));
    texts->list[texts->count] = NULL;
}

void texts_set(texts_t *texts, const char *name, const char *value) {
    const size_t length = strlen(name), more = value != NULL ? 1 + strlen(value) : 0;
    char *line = own_memory(NULL, length + more + 1);
    memcpy(line, name, length + 1);
    if (value != NULL) line[length] = '=', memcpy(line + length + 1, value, more);
    for (size_t i = 0; i < texts->count; i++) {
        char *there = texts->list[i];
        if (strncmp(there, name, length) != 0 || (there[length] != '=' && there[length] != 0))
            continue;
        free(there);
        texts->list[i] = line;
        return;
    }
    texts_add(texts, line);
    free(line);
}

void texts_free(texts_t *texts) {
    for (size_t i = 0; i < texts->count; i++) free(texts->list[i]);
    free(texts->list);
    *texts = (texts_t){0};
}
