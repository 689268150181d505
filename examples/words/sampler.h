/* The choices of word2vec (Mikolov et al. 2013, Distributed representations of words and phrases):
 * which words are passed over, and which are taken at random.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WORDS_SAMPLER_H
#define WORDS_SAMPLER_H
#include "text.h"

typedef struct sampler {
    uint64_t state;
    float *kept;     /* of each word: how likely it is not passed over */
    uint32_t *noise; /* [NOISE] words, as often as their count^(3/4) */
} sampler_t;
enum { NOISE = 1 << 20 };

/* 0, or -1: no memory. Free it in any case. */
int sampler_create(sampler_t *sampler, const text_t *text, uint64_t seed);
void sampler_free(sampler_t *sampler);

uint64_t sampler_next(sampler_t *sampler);
/* The more often a word occurs, the more often it is passed over. */
int sampler_passes(sampler_t *sampler, uint32_t word);
uint32_t sampler_noise(sampler_t *sampler);

#endif
