/* The vectors of all words, and what they are good for.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WORDS_VECTORS_H
#define WORDS_VECTORS_H
#include "skip_gram.h"
#include "text.h"

#include <dtrain.h>

typedef struct vectors {
    const text_t *text;
    vector_t *of; /* each word's, of length 1 */
} vectors_t;

/* From the table of words and their parts. 0, or -1 with the reason on stderr. Free them in any
 * case. */
int vectors_pull(vectors_t *vectors, const text_t *text, dtrain_table_t *in);
void vectors_free(vectors_t *vectors);

/* The file has two words in each line that belong together. How often the second is nearer to the
 * first than the second of another line is, 0 to 1, where 0.5 would be guessed; -1 with the reason
 * on stderr. */
double vectors_score(const vectors_t *vectors, const char *pairs);
/* Prints the words nearest to this one. */
void vectors_neighbors(const vectors_t *vectors, const char *name);

#endif
