/* A text as numbers of words. SPDX-License-Identifier: Apache-2.0 */
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
    uint32_t *tokens; /* the words of all files, in their order */
    size_t token_count;
} text_t;

/* Reads what these files consist of: runs of letters, in lower case, longer ones cut off; words
 * that occur fewer than `least` times are left out. 0, or -1 after a line on stderr. */
int text_read(text_t *text, char *const *files, int file_count, uint32_t least);
void text_free(text_t *text);

#endif
