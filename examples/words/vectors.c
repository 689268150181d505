/* SPDX-License-Identifier: Apache-2.0 */
#include "vectors.h"

#include "status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float dot(const vector_t a, const vector_t b) {
    float sum = 0;
    for (int d = 0; d < DIM; d++) sum += a[d] * b[d];
    return sum;
}

static int pull_batch(vectors_t *vectors, batch_t *batch, dtrain_table_t *in, size_t first) {
    const uint64_t keys = (uint64_t)batch_in(batch, batch->words);
    TRY(dtrain_table_pull_rows(in, batch->in, keys, batch->in_rows, NULL, NULL));
    for (int w = 0; w < batch->words; w++) {
        float *vector = vectors->of[first + (size_t)w];
        batch_vector(batch, w, vector);
        const float length = sqrtf(dot(vector, vector)) + 1e-9f;
        for (int d = 0; d < DIM; d++) vector[d] /= length;
    }
    batch->words = 0;
    return 0;
}

int vectors_pull(vectors_t *vectors, const text_t *text, dtrain_table_t *in) {
    batch_t *batch = calloc(1, sizeof *batch);
    *vectors = (vectors_t){text, malloc((text->word_count + 1) * sizeof(vector_t))};
    int result = batch != NULL && vectors->of != NULL ? 0 : -1;
    for (size_t first = 0; result == 0 && first < text->word_count;) {
        size_t end = first;
        while (end < text->word_count && batch_add(batch, text->words[end].name)) end++;
        result = pull_batch(vectors, batch, in, first);
        first = end;
    }
    free(batch);
    return result;
}

void vectors_free(vectors_t *vectors) { free(vectors->of); }

static const float *find(const vectors_t *vectors, const char *name) {
    const word_t *word = text_find(vectors->text, name);
    return word != NULL ? vectors->of[word - vectors->text->words] : NULL;
}

double vectors_score(const vectors_t *vectors, const char *pairs) {
    char names[2][LONGEST_WORD + 1];
    const float *other = NULL; /* the second word of the last line */
    uint64_t better = 0, all = 0;
    FILE *file = fopen(pairs, "r");
    if (file == NULL) {
        perror(pairs);
        return -1;
    }
    while (fscanf(file, "%31s %31s", names[0], names[1]) == 2) {
        const float *a = find(vectors, names[0]), *b = find(vectors, names[1]);
        if (a == NULL || b == NULL) continue;
        if (other != NULL) {
            better += dot(a, b) > dot(a, other);
            all++;
        }
        other = b;
    }
    fclose(file);
    return all > 0 ? (double)better / (double)all : -1;
}

void vectors_neighbors(const vectors_t *vectors, const char *name) {
    enum { SHOWN = 7, LEAST = 20 };
    const text_t *text = vectors->text;
    const word_t *best[SHOWN] = {NULL};
    float scores[SHOWN + 1] = {0};
    const float *vector = find(vectors, name);
    for (size_t w = 0; vector != NULL && w < text->word_count; w++) {
        if (vectors->of[w] == vector || text->words[w].count < LEAST) continue;
        const float score = dot(vectors->of[w], vector);
        int at = SHOWN;
        for (; at > 0 && score > scores[at - 1]; at--) {
            if (at == SHOWN) continue;
            scores[at] = scores[at - 1];
            best[at] = best[at - 1];
        }
        if (at == SHOWN) continue;
        scores[at] = score;
        best[at] = &text->words[w];
    }
    printf("%12s:", name);
    for (int i = 0; i < SHOWN && best[i] != NULL; i++) printf(" %s", best[i]->name);
    printf("\n");
}
