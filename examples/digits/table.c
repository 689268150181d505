/* Every worker takes batches of its own shard: pulls the parameters, pushes the gradient. The
 * servers apply it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "status.h"
#include "trainer.h"

#include <stdlib.h>
#include <string.h>

typedef struct worker {
    trainer_t *trainer;
    dtrain_table_t *table;
    size_t *order; /* of the shard's samples */
    size_t next;   /* position in it */
    uint64_t rounds;
    size_t steps; /* per epoch, the same for all workers */
    size_t batch; /* this worker's part of a batch */
} worker_t;

static uint32_t consistency(const char *mode) {
    return strcmp(mode, "ssp") == 0   ? DTRAIN_SSP
           : strcmp(mode, "bsp") == 0 ? DTRAIN_BSP
                                      : DTRAIN_ASYNC;
}

static int create_table(worker_t *w) {
    const trainer_t *t = w->trainer;
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = t->count;
    params.rule = DTRAIN_RULE_MOMENTUM;
    params.consistency = consistency(t->settings.mode);
    params.staleness = params.consistency == DTRAIN_SSP ? (uint32_t)t->settings.staleness : 0;
    params.learning_rate = t->settings.rate;
    params.momentum = t->settings.momentum;
    params.given = DTRAIN_GIVEN_LEARNING_RATE | DTRAIN_GIVEN_MOMENTUM; /* if they are 0, too */
    if (report(dtrain_table_create(t->comm, "digits", &params, &w->table), "creating the table"))
        return -1;
    if (t->rank == 0 && report(dtrain_table_set(w->table, 0, t->count, t->parameters, NULL, NULL),
                               "setting the first parameters"))
        return -1;
    return report(dtrain_barrier(t->comm, NULL, NULL), "waiting for the first parameters");
}

/* All workers do the same number of steps an epoch, whatever the sizes of their shards. */
static int plan(worker_t *w) {
    trainer_t *t = w->trainer;
    uint64_t all = t->train.count;
    if (report(dtrain_allreduce(t->comm, &all, &all, 1, DTRAIN_U64, DTRAIN_SUM, NULL, NULL),
               "counting the samples"))
        return -1;
    const size_t batch = (size_t)t->settings.batch, size = (size_t)t->size;
    w->steps = (all + batch - 1) / batch;
    w->batch = batch < size ? 1 : batch / size;
    if (w->batch > t->train.count) w->batch = t->train.count;
    w->next = t->train.count; /* shuffle first */
    w->order = malloc(t->train.count * sizeof *w->order);
    return w->order != NULL ? 0 : report_text("out of memory");
}

static int pull(worker_t *w) {
    trainer_t *t = w->trainer;
    t->bytes += sizeof(float) * (double)t->count;
    return report(dtrain_table_pull(w->table, 0, t->count, t->parameters, NULL, NULL),
                  "pulling the parameters");
}

static int step(worker_t *w, double done) {
    trainer_t *t = w->trainer;
    score_t score;
    if (pull(w) != 0) return -1;
    if (w->next + w->batch > t->train.count) {
        shuffle(w->order, t->train.count,
                t->settings.seed + w->rounds++ * (uint64_t)t->size + (uint64_t)t->rank);
        w->next = 0;
    }
    trainer_gradient(t, w->order + w->next, w->batch, &score);
    w->next += w->batch;
    /* One worker's part of the mean: `size` such pushes move as far as a synchronous step. */
    const float scale = 1.0f / (float)(w->batch * (size_t)t->size);
    for (size_t i = 0; i < t->count; i++) t->gradient[i] *= scale;
    if (report(dtrain_table_push(w->table, 0, t->count, t->gradient, NULL, NULL),
               "pushing the gradient") != 0)
        return -1;
    t->bytes += sizeof(float) * (double)t->count;
    if (report(dtrain_table_clock(w->table, NULL, NULL), "ending the step") != 0) return -1;
    trainer_step(t, done, w->batch * (size_t)t->size, &score, w->batch);
    return 0;
}

static int run(worker_t *w) {
    trainer_t *t = w->trainer;
    const int epochs = t->settings.epochs;
    for (int epoch = 0; epoch < epochs; epoch++) {
        for (size_t i = 0; i < w->steps; i++)
            if (step(w, epoch + (double)(i + 1) / (double)w->steps) != 0) return -1;
        /* The last test is of what all workers have made. */
        if (epoch + 1 == epochs &&
            report(dtrain_barrier(t->comm, NULL, NULL), "waiting for the others") != 0)
            return -1;
        if (t->rank == 0 && pull(w) != 0) return -1;
        trainer_epoch(t, epoch + 1);
    }
    return 0;
}

int train_with_table(trainer_t *t) {
    worker_t worker = {.trainer = t};
    int result = plan(&worker) == 0 && create_table(&worker) == 0 ? 0 : -1;
    t->start = now_seconds();
    if (result == 0) result = run(&worker);
    if (worker.table != NULL && dtrain_table_destroy(worker.table) != DTRAIN_OK) result = -1;
    free(worker.order);
    return result;
}
