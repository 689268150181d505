/* Skip-gram with negative sampling, on rows that somebody else has fetched.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WORDS_SKIP_GRAM_H
#define WORDS_SKIP_GRAM_H
#include "subwords.h"

enum {
    DIM = 32,
    WINDOW = 5,                              /* neighbors on each side, at most              */
    NEGATIVES = 4,                           /* random words for each neighbor               */
    MOST_OUT = 2 * WINDOW * (1 + NEGATIVES), /* of a word                                     */
    BATCH_WORDS = 256,
    BATCH_ROWS = 32 * BATCH_WORDS
};
typedef float vector_t[DIM];

/* Word w has the keys in[in_end[w - 1]] to in[in_end[w] - 1], whose rows' mean is its vector, and
 * out[out_end[w - 1]] ..., each neighbor followed by NEGATIVES random words. */
typedef struct batch {
    int words, in_end[BATCH_WORDS], out_end[BATCH_WORDS];
    uint64_t in[BATCH_ROWS], out[BATCH_ROWS];
    vector_t in_rows[BATCH_ROWS], out_rows[BATCH_ROWS];
} batch_t;

static inline int batch_in(const batch_t *batch, int words) { /* keys of the first words */
    return words > 0 ? batch->in_end[words - 1] : 0;
}
static inline int batch_out(const batch_t *batch, int words) {
    return words > 0 ? batch->out_end[words - 1] : 0;
}

/* Adds a word without neighbors; the caller appends them to out. False: no room for another. */
int batch_add(batch_t *batch, const char *name);
/* Word w's vector. */
void batch_vector(const batch_t *batch, int w, vector_t vector);
/* Replaces all rows by the derivatives of the loss by them, and returns the loss. */
double batch_learn(batch_t *batch);

#endif
