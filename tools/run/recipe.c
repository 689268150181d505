/* Packs recipes as texts that end in NUL: whether the program may be beside this one, the folder,
 * the number of arguments, the arguments, the variables.
 * SPDX-License-Identifier: Apache-2.0 */
#include "recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void recipe_set(recipe_t *recipe, const char *name, const char *value) {
    texts_set(&recipe->variables, name, value);
}

void recipe_set_number(recipe_t *recipe, const char *name, int value) {
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    recipe_set(recipe, name, text);
}

static void put(char **bytes, size_t *size, const char *text) {
    const size_t more = strlen(text) + 1;
    *bytes = own_memory(*bytes, *size + more);
    memcpy(*bytes + *size, text, more);
    *size += more;
}

char *recipe_pack(const recipe_t *recipe, size_t *size) {
    char *bytes = NULL, count[24];
    *size = 0;
    put(&bytes, size, recipe->beside ? "1" : "0");
    put(&bytes, size, recipe->directory != NULL ? recipe->directory : "");
    snprintf(count, sizeof count, "%zu", recipe->arguments.count);
    put(&bytes, size, count);
    for (size_t i = 0; i < recipe->arguments.count; i++)
        put(&bytes, size, recipe->arguments.list[i]);
    for (size_t i = 0; i < recipe->variables.count; i++)
        put(&bytes, size, recipe->variables.list[i]);
    return bytes;
}

bool recipe_unpack(recipe_t *recipe, const char *bytes, size_t size) {
    texts_t all = {0};
    *recipe = (recipe_t){0};
    if (size == 0 || bytes[size - 1] != 0) return false;
    for (const char *text = bytes; text < bytes + size; text += strlen(text) + 1)
        texts_add(&all, text);
    const size_t arguments = all.count >= 3 ? strtoul(all.list[2], NULL, 10) : 0;
    const bool good = arguments >= 1 && arguments <= all.count - 3;
    if (good) {
        recipe->beside = all.list[0][0] == '1';
        if (all.list[1][0] != 0) recipe->directory = strdup(all.list[1]);
        for (size_t i = 3; i < all.count; i++)
            texts_add(i < 3 + arguments ? &recipe->arguments : &recipe->variables, all.list[i]);
    }
    texts_free(&all);
    return good;
}

void recipe_free(recipe_t *recipe) {
    texts_free(&recipe->arguments);
    texts_free(&recipe->variables);
    free(recipe->directory);
    *recipe = (recipe_t){0};
}
