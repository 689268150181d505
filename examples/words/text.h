/* A text as numbers of words.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WORDS_TEXT_H
#define WORDS_TEXT_H
#include <stddef.h>
#include <stdint.h>

enum { LONGEST_WORD = 31 };

typedef struct word {
    char name[LONGEST_WORD + 1];
    uint64_t key; /* a hash of the name, alike in every process */
    uint32_t count;
} word_t;

typedef struct text {
    word_t *words;
    size_t word_count;
    uint32_t *tokens; /* the words of the file, in their order */
    size_t token_count;
    uint32_t *slots; /* hash table of the words: number + 1, or 0; open addressing */
    size_t slot_count;
} text_t;

/* Reads what the file consists of: runs of letters, in lower case, longer ones cut off. 0, or -1
 * after a line on stderr. Free it in any case. */
int text_read(text_t *text, const char *path);
/* NULL: it is not in the text. */
const word_t *text_find(const text_t *text, const char *name);
void text_free(text_t *text);

#endif
