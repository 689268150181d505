/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer.h"

#include <string.h>

void trainer_gradient(trainer_t *t, const size_t *order, size_t count, score_t *score) {
    memset(t->gradient, 0, t->count * sizeof *t->gradient);
    *score = (score_t){0};
    for (size_t i = 0; i < count; i++)
        mlp_add(&t->mlp, t->parameters, &t->train.samples[order[i]], t->gradient, score);
}

static point_t point_of(const trainer_t *t, int epoch) {
    double seconds = now_seconds() - t->start;
    return (point_t){epoch,
                     seconds,
                     t->score.loss / (double)t->scored,
                     t->accuracy,
                     t->samples / seconds,
                     t->bytes / 1e6,
                     t->sent / 1e6};
}

void trainer_step(trainer_t *t, double done, size_t samples, const score_t *score, size_t scored) {
    t->samples += (double)samples;
    t->score.loss += score->loss;
    t->score.correct += score->correct;
    t->scored += scored;
    point_t now = point_of(t, (int)done);
    progress_step(&t->progress, done, &now);
}

void trainer_epoch(trainer_t *t, int epoch) {
    if (t->rank == 0) {
        score_t test = {0};
        for (size_t i = 0; i < t->test.count; i++)
            mlp_add(&t->mlp, t->parameters, &t->test.samples[i], NULL, &test);
        t->accuracy = test.correct / (double)t->test.count;
        point_t now = point_of(t, epoch);
        progress_epoch(&t->progress, &now);
        curve_add(t->curve, &now);
    }
    t->score = (score_t){0};
    t->scored = 0;
}
