/* A list of texts that grows: a command line, an environment.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_TEXTS_H
#define RUN_TEXTS_H
#include <stddef.h>

typedef struct texts {
    char **list; /* own copies, NULL at the end; NULL while the list is empty */
    size_t count;
} texts_t;

/* Ends the program if there is no memory, as the next function does: the job ends with it. */
void texts_add(texts_t *texts, const char *text);
/* Sets the variable's line, "NAME=VALUE", whether or not the list has one; value NULL: "NAME",
 * which means that it is to be unset. */
void texts_set(texts_t *texts, const char *name, const char *value);
void texts_free(texts_t *texts);

/* malloc() or realloc() that ends the program if there is no memory. */
void *own_memory(void *old, size_t size);

#endif
