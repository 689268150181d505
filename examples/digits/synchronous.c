/* One step at a time, on a batch of which every worker takes its slice. The slices' gradients are
 * summed over the workers, so that any number of them computes what one alone would.
 * SPDX-License-Identifier: Apache-2.0 */
#include "reduce.h"
#include "status.h"
#include "trainer.h"

#include <stdlib.h>

static void descend(trainer_t *t, float *velocity, size_t batch) {
    const float scale = reduce_scale(t, batch), rate = (float)t->settings.rate,
                momentum = (float)t->settings.momentum;
    for (size_t i = 0; i < t->count; i++) {
        velocity[i] = momentum * velocity[i] + scale * t->gradient[i];
        t->parameters[i] -= rate * velocity[i];
    }
}

static int run_epoch(trainer_t *t, int epoch, size_t *order, float *velocity) {
    const size_t all = t->train.count, batch = (size_t)t->settings.batch;
    const size_t rank = (size_t)t->rank, size = (size_t)t->size;
    shuffle(order, all, t->settings.seed + (uint64_t)epoch); /* the same on every worker */
    for (size_t first = 0; first < all; first += batch) {
        const size_t now = all - first < batch ? all - first : batch;
        const size_t begin = now * rank / size, end = now * (rank + 1) / size;
        score_t score;
        trainer_gradient(t, order + first + begin, end - begin, &score);
        if (reduce_gradient(t, &score, now) != 0) return -1;
        descend(t, velocity, now);
        trainer_step(t, epoch + (double)(first + now) / (double)all, now, &score, now);
    }
    trainer_epoch(t, epoch + 1);
    return 0;
}

int train_synchronously(trainer_t *t) {
    size_t *order = malloc(t->train.count * sizeof *order);
    float *velocity = calloc(t->count, sizeof *velocity);
    int result = order != NULL && velocity != NULL ? 0 : report_text("out of memory");
    if (result == 0) result = reduce_open(t);
    for (int epoch = 0; result == 0 && epoch < t->settings.epochs; epoch++)
        result = run_epoch(t, epoch, order, velocity);
    if (reduce_close(t) != 0) result = -1;
    free(order);
    free(velocity);
    return result;
}
