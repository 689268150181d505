/* SPDX-License-Identifier: Apache-2.0 */
#include "mlp.h"

#include "dataset.h"
#include "status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int mlp_create(mlp_t *mlp, size_t hidden) {
    *mlp = (mlp_t){hidden, calloc(hidden, sizeof(float)), calloc(hidden, sizeof(float))};
    if (mlp->activation != NULL && mlp->delta != NULL) return 0;
    mlp_free(mlp);
    return report_text("out of memory");
}

void mlp_free(mlp_t *mlp) {
    free(mlp->activation);
    free(mlp->delta);
    *mlp = (mlp_t){0};
}

size_t mlp_parameters(const mlp_t *mlp) {
    return (PIXELS + 1) * mlp->hidden + (mlp->hidden + 1) * CLASSES;
}

tensor_t mlp_tensor(const mlp_t *mlp, int index) {
    const size_t hidden = mlp->hidden, outputs = (PIXELS + 1) * hidden;
    const tensor_t tensors[TENSORS] = {{0, PIXELS * hidden, PIXELS},
                                       {PIXELS * hidden, hidden, 1},
                                       {outputs, hidden * CLASSES, hidden},
                                       {outputs + hidden * CLASSES, CLASSES, 1}};
    return tensors[index];
}

/* Uniform with a variance that keeps activations and gradients in range (Glorot, Bengio 2010). */
static void fill(float *weights, size_t inputs, size_t outputs, uint64_t *random) {
    float limit = sqrtf(6.0f / (float)(inputs + outputs));
    for (size_t i = 0; i < inputs * outputs; i++)
        weights[i] = limit * (2.0f * (float)(random_next(random) >> 40) / (1 << 24) - 1.0f);
}

void mlp_initialize(const mlp_t *mlp, float *parameters, uint64_t seed) {
    memset(parameters, 0, mlp_parameters(mlp) * sizeof *parameters);
    fill(parameters, PIXELS, mlp->hidden, &seed);
    fill(parameters + (PIXELS + 1) * mlp->hidden, mlp->hidden, CLASSES, &seed);
}

/* y[n] += a * x[n] */
static void add_scaled(float *restrict y, float a, const float *restrict x, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] += a * x[i];
}

/* The outputs become probabilities; returns the loss. */
static double softmax(float *output, int32_t label, int *best) {
    float sum = 0;
    *best = 0;
    for (int c = 1; c < CLASSES; c++)
        if (output[c] > output[*best]) *best = c;
    float highest = output[*best];
    for (int c = 0; c < CLASSES; c++) sum += output[c] = expf(output[c] - highest);
    for (int c = 0; c < CLASSES; c++) output[c] /= sum;
    return -log(fmax(output[label], 1e-30));
}

void mlp_add(const mlp_t *mlp, const float *parameters, const sample_t *sample, float *gradient,
             score_t *score) {
    const size_t hidden = mlp->hidden;
    const size_t bias1 = PIXELS * hidden, weights2 = bias1 + hidden,
                 bias2 = weights2 + hidden * CLASSES;
    float *activation = mlp->activation, *delta = mlp->delta, output[CLASSES];
    int best;

    memcpy(activation, parameters + bias1, hidden * sizeof *activation);
    for (size_t i = 0; i < PIXELS; i++)
        if (sample->image[i] != 0) /* half of them are */
            add_scaled(activation, sample->image[i], parameters + i * hidden, hidden);
    for (size_t h = 0; h < hidden; h++) activation[h] = tanhf(activation[h]);
    memcpy(output, parameters + bias2, sizeof output);
    for (size_t h = 0; h < hidden; h++)
        add_scaled(output, activation[h], parameters + weights2 + h * CLASSES, CLASSES);
    score->loss += softmax(output, sample->label, &best);
    score->correct += best == sample->label;
    if (gradient == NULL) return;

    output[sample->label] -= 1; /* the loss's derivative by the outputs before the softmax */
    add_scaled(gradient + bias2, 1, output, CLASSES);
    for (size_t h = 0; h < hidden; h++) {
        const float *weights = parameters + weights2 + h * CLASSES;
        float sum = 0;
        for (int c = 0; c < CLASSES; c++) sum += weights[c] * output[c];
        delta[h] = sum * (1 - activation[h] * activation[h]);
        add_scaled(gradient + weights2 + h * CLASSES, activation[h], output, CLASSES);
    }
    add_scaled(gradient + bias1, 1, delta, hidden);
    for (size_t i = 0; i < PIXELS; i++)
        if (sample->image[i] != 0)
            add_scaled(gradient + i * hidden, sample->image[i], delta, hidden);
}
