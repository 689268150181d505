/* The gradients' all-reduce, plain or compressed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef REDUCE_H
#define REDUCE_H
#include "trainer.h"

/* "none"; a kind of compression; "scaled": the mean over the batch by prescale and postscale;
 * "adasum". The name as a constant, or NULL. */
const char *reduce_find(const char *name);

/* All: 0, or -1 with the reason on stderr. */
int reduce_open(trainer_t *trainer);
int reduce_close(trainer_t *trainer);
/* Puts the gradients and the scores of all workers together. batch: samples in it. */
int reduce_gradient(trainer_t *trainer, score_t *score, size_t batch);

/* What the gradient has to be multiplied by afterwards. */
float reduce_scale(const trainer_t *trainer, size_t batch);

#endif
