/* One worker: goes through its part of the text, and learns on rows that it pulls and pushes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WORDS_TRAINER_H
#define WORDS_TRAINER_H
#include "sampler.h"
#include "skip_gram.h"
#include "text.h"

#include <dtrain.h>

/* While one batch is computed the rows of the next come and the changes of the last go. */
enum { IN_FLIGHT = 3 };

/* What all workers have done so far. */
typedef struct totals {
    double words; /* of the text, those that were passed over among them */
    double neighbors, loss;
} totals_t;

typedef struct slot {
    batch_t batch;
    totals_t done;
    dtrain_request_t *requests[3];
} slot_t;

typedef struct trainer {
    const text_t *text;
    dtrain_comm_t *comm;
    int rank, size, epochs;
    dtrain_table_t *in;     /* rows of words and their parts */
    dtrain_table_t *out;    /* rows of words as neighbors   */
    dtrain_table_t *totals; /* a totals_t, which all add to  */
    sampler_t sampler;
    slot_t *slots;       /* [IN_FLIGHT] */
    size_t first, count; /* this worker's part of the text */
    size_t done, all;    /* of it, over all epochs         */
    double start, told;  /* when training began, and was last told of, in seconds */
    totals_t last;       /* that were told of              */
} trainer_t;

/* All: 0, or -1 with the reason on stderr. */
int trainer_create(trainer_t *trainer, const text_t *text, dtrain_comm_t *comm, int epochs);
int trainer_run(trainer_t *trainer);
int trainer_destroy(trainer_t *trainer);

#endif
