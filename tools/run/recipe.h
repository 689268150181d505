/* What one process runs: its command line, variables and folder; as bytes for another host.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_RECIPE_H
#define RUN_RECIPE_H
#include "texts.h"

#include <stdbool.h>

typedef struct recipe {
    texts_t arguments; /* the program first */
    texts_t variables; /* "NAME=VALUE", or "NAME" to unset it; others stay as they are */
    char *directory;   /* NULL: that of the process which starts it */
    bool beside;       /* a program beside this one is preferred to one on the PATH */
} recipe_t;

void recipe_set(recipe_t *recipe, const char *name, const char *value); /* NULL: unset */
void recipe_set_number(recipe_t *recipe, const char *name, int value);
/* Returns malloc()ed bytes. */
char *recipe_pack(const recipe_t *recipe, size_t *size);
/* False: these are not the bytes of a recipe. */
bool recipe_unpack(recipe_t *recipe, const char *bytes, size_t size);
void recipe_free(recipe_t *recipe);

#endif
