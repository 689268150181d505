/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include "hash.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(const char *name) {
    uint64_t hash = HASH_BEGIN;
    for (; *name != '\0'; name++) hash = hash_add(hash, *name);
    return hash_end(hash);
}

/* Room for one more element, doubling; NULL: no memory, and the old array is still there. */
static void *grown(void *array, size_t count, size_t size) {
    if ((count & (count - 1)) != 0 && count > 0) return array;
    return realloc(array, (count > 0 ? 2 * count : 1) * size);
}

static int enlarge(text_t *text) {
    const size_t size = text->slot_count > 0 ? 2 * text->slot_count : 1024;
    uint32_t *slots = calloc(size, sizeof *slots);
    if (slots == NULL) return -1;
    for (size_t w = 0; w < text->word_count; w++) {
        size_t at = text->words[w].key & (size - 1);
        while (slots[at] != 0) at = (at + 1) & (size - 1);
        slots[at] = (uint32_t)w + 1;
    }
    free(text->slots);
    text->slots = slots;
    text->slot_count = size;
    return 0;
}

/* Where the word is, or where it belongs. */
static uint32_t *slot_of(const text_t *text, const char *name, uint64_t key) {
    size_t at = key & (text->slot_count - 1);
    while (text->slots[at] != 0 && strcmp(text->words[text->slots[at] - 1].name, name) != 0)
        at = (at + 1) & (text->slot_count - 1);
    return &text->slots[at];
}

static int add(text_t *text, const char *name) {
    if (2 * text->word_count >= text->slot_count && enlarge(text) != 0) return -1;
    const uint64_t key = hash_of(name);
    uint32_t *slot = slot_of(text, name, key);
    if (*slot == 0) {
        word_t *words = grown(text->words, text->word_count, sizeof *words);
        if (words == NULL) return -1;
        text->words = words;
        word_t *fresh = &words[text->word_count++];
        memset(fresh, 0, sizeof *fresh);
        strcpy(fresh->name, name);
        fresh->key = key;
        *slot = (uint32_t)text->word_count;
    }
    uint32_t *tokens = grown(text->tokens, text->token_count, sizeof *tokens);
    if (tokens == NULL) return -1;
    text->tokens = tokens;
    tokens[text->token_count++] = *slot - 1;
    text->words[*slot - 1].count++;
    return 0;
}

static int read_words(text_t *text, FILE *file) {
    char name[LONGEST_WORD + 1];
    size_t length = 0;
    for (int c = ' '; c != EOF;) {
        c = getc(file);
        if (c != EOF && isascii(c) && isalpha(c)) {
            if (length < LONGEST_WORD) name[length++] = (char)tolower(c);
            continue;
        }
        name[length] = '\0';
        if (length > 0 && add(text, name) != 0) return -1;
        length = 0;
    }
    return ferror(file) ? -1 : 0;
}

int text_read(text_t *text, const char *path) {
    memset(text, 0, sizeof *text);
    FILE *file = fopen(path, "r");
    const int result = file == NULL ? -1 : read_words(text, file);
    if (result != 0) perror(path);
    if (file != NULL) fclose(file);
    return result;
}

const word_t *text_find(const text_t *text, const char *name) {
    const uint32_t number = text->slot_count > 0 ? *slot_of(text, name, hash_of(name)) : 0;
    return number > 0 ? &text->words[number - 1] : NULL;
}

void text_free(text_t *text) {
    free(text->words);
    free(text->tokens);
    free(text->slots);
}
