/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Open addressing; half full at most. */
typedef struct index {
    uint32_t *slots; /* number of the word + 1; 0: free */
    size_t size;     /* a power of two */
} index_t;

static uint64_t hash_of(const char *name) { /* FNV-1a, then mixed: its high bits are weak */
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name != '\0'; name++) hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
}

/* Room for one more element, doubling; NULL: no memory, and the old array is still there. */
static void *grown(void *array, size_t count, size_t size) {
    if ((count & (count - 1)) != 0 && count > 0) return array;
    return realloc(array, (count > 0 ? 2 * count : 1) * size);
}

static int enlarge(index_t *index, const text_t *text) {
    index_t larger = {.size = index->size > 0 ? 2 * index->size : 1024};
    larger.slots = calloc(larger.size, sizeof *larger.slots);
    if (larger.slots == NULL) return -1;
    for (size_t w = 0; w < text->word_count; w++) {
        size_t at = text->words[w].key & (larger.size - 1);
        while (larger.slots[at] != 0) at = (at + 1) & (larger.size - 1);
        larger.slots[at] = (uint32_t)w + 1;
    }
    free(index->slots);
    *index = larger;
    return 0;
}

static int add(text_t *text, index_t *index, const char *name) {
    if (2 * text->word_count >= index->size && enlarge(index, text) != 0) return -1;
    const uint64_t key = hash_of(name);
    size_t at = key & (index->size - 1);
    while (index->slots[at] != 0 && strcmp(text->words[index->slots[at] - 1].name, name) != 0)
        at = (at + 1) & (index->size - 1);
    if (index->slots[at] == 0) {
        word_t *words = grown(text->words, text->word_count, sizeof *words);
        if (words == NULL) return -1;
        text->words = words;
        word_t *fresh = &words[text->word_count++];
        memset(fresh, 0, sizeof *fresh);
        strcpy(fresh->name, name);
        fresh->key = key;
        index->slots[at] = (uint32_t)text->word_count;
    }
    uint32_t *tokens = grown(text->tokens, text->token_count, sizeof *tokens);
    if (tokens == NULL) return -1;
    text->tokens = tokens;
    tokens[text->token_count++] = index->slots[at] - 1;
    text->words[index->slots[at] - 1].count++;
    return 0;
}

static int read_file(text_t *text, index_t *index, FILE *file) {
    char name[LONGEST_WORD + 1];
    size_t length = 0;
    for (int c = ' '; c != EOF;) {
        c = getc(file);
        if (c != EOF && isascii(c) && isalpha(c)) {
            if (length < LONGEST_WORD) name[length++] = (char)tolower(c);
            continue;
        }
        name[length] = '\0';
        if (length > 0 && add(text, index, name) != 0) return -1;
        length = 0;
    }
    return ferror(file) ? -1 : 0;
}

static int drop_rare(text_t *text, uint32_t least) {
    uint32_t *number = malloc((text->word_count + 1) * sizeof *number);
    size_t words = 0, tokens = 0;
    if (number == NULL) return -1;
    for (size_t w = 0; w < text->word_count; w++) {
        number[w] = text->words[w].count < least ? UINT32_MAX : (uint32_t)words;
        if (number[w] != UINT32_MAX) text->words[words++] = text->words[w];
    }
    for (size_t t = 0; t < text->token_count; t++)
        if (number[text->tokens[t]] != UINT32_MAX) text->tokens[tokens++] = number[text->tokens[t]];
    text->word_count = words;
    text->token_count = tokens;
    free(number);
    return 0;
}

int text_read(text_t *text, char *const *files, int file_count, uint32_t least) {
    index_t index = {NULL, 0};
    int result = 0;
    memset(text, 0, sizeof *text);
    for (int f = 0; f < file_count && result == 0; f++) {
        FILE *file = fopen(files[f], "r");
        result = file == NULL ? -1 : read_file(text, &index, file);
        if (result != 0) perror(files[f]);
        if (file != NULL) fclose(file);
    }
    free(index.slots);
    return result == 0 ? drop_rare(text, least) : -1;
}

void text_free(text_t *text) {
    free(text->words);
    free(text->tokens);
}
