/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler.h"

#include <math.h>
#include <stdlib.h>

static const double common = 1e-4; /* share of the text from which on words are passed over */

static void fill_noise(uint32_t *noise, const text_t *text) {
    double all = 0, sum = 0;
    for (size_t w = 0; w < text->word_count; w++) all += pow(text->words[w].count, 0.75);
    size_t n = 0;
    for (size_t w = 0; w < text->word_count; w++) {
        sum += pow(text->words[w].count, 0.75);
        for (; n < NOISE && (double)n < sum / all * NOISE; n++) noise[n] = (uint32_t)w;
    }
    for (; n < NOISE; n++) noise[n] = (uint32_t)text->word_count - 1; /* of rounding */
}

int sampler_create(sampler_t *sampler, const text_t *text, uint64_t seed) {
    *sampler = (sampler_t){.state = seed,
                           .kept = malloc((text->word_count + 1) * sizeof(float)),
                           .noise = malloc(NOISE * sizeof(uint32_t))};
    if (sampler->kept == NULL || sampler->noise == NULL) return -1;
    for (size_t w = 0; w < text->word_count; w++) {
        const double share = (double)text->words[w].count / (double)text->token_count;
        sampler->kept[w] = (float)(sqrt(common / share) + common / share);
    }
    fill_noise(sampler->noise, text);
    return 0;
}

void sampler_free(sampler_t *sampler) {
    free(sampler->kept);
    free(sampler->noise);
}

uint64_t sampler_next(sampler_t *sampler) { /* Steele et al. 2014: SplitMix */
    uint64_t x = sampler->state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

int sampler_passes(sampler_t *sampler, uint32_t word) {
    return (float)(sampler_next(sampler) >> 40) * 0x1p-24f >= sampler->kept[word];
}

uint32_t sampler_noise(sampler_t *sampler) { return sampler->noise[sampler_next(sampler) % NOISE]; }
