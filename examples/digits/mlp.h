/* A classifier with one hidden layer: PIXELS inputs, tanh, CLASSES outputs, softmax and cross
 * entropy.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MLP_H
#define MLP_H
#include "example.h"

/* Parameters, in this order, all in one array: weights [PIXELS][hidden], biases [hidden], weights
 * [hidden][CLASSES], biases [CLASSES]. */
typedef struct mlp {
    size_t hidden;
    float *activation; /* scratch, [hidden] */
    float *delta;      /* scratch, [hidden] */
} mlp_t;

enum { TENSORS = 4 };
typedef struct tensor {
    size_t first, count; /* among the parameters */
    size_t rows;         /* 1: a vector */
} tensor_t;
tensor_t mlp_tensor(const mlp_t *mlp, int index);

typedef struct score {
    double loss;    /* sum over the samples */
    double correct; /* number of right answers */
} score_t;

int mlp_create(mlp_t *mlp, size_t hidden); /* 0, or -1 with the reason on stderr */
void mlp_free(mlp_t *mlp);
size_t mlp_parameters(const mlp_t *mlp);
void mlp_initialize(const mlp_t *mlp, float *parameters, uint64_t seed);

/* Adds the sample's loss to the score and, unless gradient is NULL, its derivative by each
 * parameter to gradient. */
void mlp_add(const mlp_t *mlp, const float *parameters, const sample_t *sample, float *gradient,
             score_t *score);

#endif
