/* One worker's training run.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAINER_H
#define TRAINER_H
#include "dataset.h"
#include "mlp.h"
#include "progress.h"
#include "settings.h"

#include "dtrain.h"

typedef struct trainer {
    settings_t settings;
    dtrain_context_t *context; /* NULL in mode single */
    dtrain_comm_t *comm;       /* likewise */
    int rank, size;
    dataset_t train, test; /* train: everything in synchronous modes, else this worker's shard */
    mlp_t mlp;
    size_t count;      /* of the parameters */
    float *parameters; /* [count] */
    float *gradient;   /* [count + 2]: two more for the loss and the right answers */
    score_t score;     /* of the epoch so far */
    size_t scored;     /* samples in it */
    double samples;    /* trained on so far, by all workers as far as this one knows */
    dtrain_compressor_t *compressors[TENSORS]; /* of the gradient, or of its tensors; or NULL */
    double bytes;                              /* given to and taken from dtrain so far */
    double sent;                               /* to other workers by all-reduce, without headers */
    double accuracy;                           /* of the last test */
    double start;                              /* when training began, now_seconds() */
    progress_t progress;
    FILE *curve;
} trainer_t;

/* Both: 0, or -1 with the reason on stderr. */
int train_synchronously(trainer_t *trainer); /* single, allreduce */
int train_with_table(trainer_t *trainer);    /* async, ssp, bsp */

/* The gradient (a sum) and the score of samples order[0..count-1] of the training set. */
void trainer_gradient(trainer_t *trainer, const size_t *order, size_t count, score_t *score);
/* Counts a step that all workers together did on `samples` samples; `done` epochs are over. */
void trainer_step(trainer_t *trainer, double done, size_t samples, const score_t *score,
                  size_t scored);
/* Tests the present parameters and records the epoch, on rank 0. */
void trainer_epoch(trainer_t *trainer, int epoch);

#endif
