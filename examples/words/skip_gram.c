/* SPDX-License-Identifier: Apache-2.0 */
#include "skip_gram.h"

#include <math.h>
#include <string.h>

int batch_add(batch_t *batch, const char *name) {
    const int in = batch_in(batch, batch->words), out = batch_out(batch, batch->words);
    if (batch->words == BATCH_WORDS || in + MOST_SUBWORDS > BATCH_ROWS ||
        out + MOST_OUT > BATCH_ROWS)
        return 0;
    batch->in_end[batch->words] = in + subwords_of(name, &batch->in[in]);
    batch->out_end[batch->words++] = out;
    return 1;
}

void batch_vector(const batch_t *batch, int w, vector_t vector) {
    const int first = batch_in(batch, w), end = batch_in(batch, w + 1);
    memset(vector, 0, sizeof(vector_t));
    for (int i = first; i < end; i++)
        for (int d = 0; d < DIM; d++) vector[d] += batch->in_rows[i][d];
    for (int d = 0; d < DIM; d++) vector[d] /= (float)(end - first);
}

/* Loss of one pair. Adds the derivative by `in`, and puts the one by `out` in its place. */
static float learn_pair(const vector_t in, vector_t out, int neighbor, vector_t sum) {
    float score = 0;
    for (int d = 0; d < DIM; d++) score += in[d] * out[d];
    const float wrong = expf(fminf(neighbor ? -score : score, 50));
    const float slope = (neighbor ? -1 : 1) * wrong / (1 + wrong);
    for (int d = 0; d < DIM; d++) {
        sum[d] += slope * out[d];
        out[d] = slope * in[d];
    }
    return logf(1 + wrong);
}

double batch_learn(batch_t *batch) {
    double loss = 0;
    for (int w = 0; w < batch->words; w++) {
        vector_t vector, sum = {0};
        batch_vector(batch, w, vector);
        const int first = batch_out(batch, w), end = batch_out(batch, w + 1);
        for (int o = first; o < end; o++)
            loss += learn_pair(vector, batch->out_rows[o], (o - first) % (1 + NEGATIVES) == 0, sum);
        const int in = batch_in(batch, w), in_end = batch_in(batch, w + 1);
        for (int d = 0; d < DIM; d++) sum[d] /= (float)(in_end - in);
        for (int i = in; i < in_end; i++) memcpy(batch->in_rows[i], sum, sizeof sum);
    }
    return loss;
}
