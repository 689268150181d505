/* The last rank of a job dies half-way, and the others go on without it: README.md tells how.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dtrain.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { steps = 100, steps_of_the_last_rank = 50, length = 1000, most_ranks = 64 };

typedef struct model {
    int64_t step; /* how many are done */
    float weights[length];
} model_t;

static void give_up(dtrain_status_t status, const char *why) {
    fprintf(stderr, "%s: %s\n", dtrain_status_name(status), why);
    exit(EXIT_FAILURE);
}

static void check(dtrain_status_t status) {
    char why[512];
    if (status == DTRAIN_OK) return;
    dtrain_last_error(why, sizeof why);
    give_up(status, why);
}

/* The share stands for the gradient of this rank's data: computed anew when a step is done again.
 * The model changes only once the sum is complete. */
static dtrain_status_t train(dtrain_comm_t *world, model_t *model, float share) {
    float gradient[length];
    for (int i = 0; i < length; i++) gradient[i] = share;
    dtrain_status_t status =
        dtrain_allreduce(world, gradient, gradient, length, DTRAIN_F32, DTRAIN_SUM, NULL, NULL);
    if (status != DTRAIN_OK) return status;
    for (int i = 0; i < length; i++) model->weights[i] += gradient[i];
    model->step++;
    return DTRAIN_OK;
}

/* One rank may have done a step that failed on another: all take the model of the one that came
 * furthest. Before the first step all begin alike by this. */
static dtrain_status_t agree(dtrain_comm_t *world, model_t *model) {
    const int64_t size = dtrain_comm_size(world);
    int64_t furthest = model->step * size + dtrain_comm_rank(world);
    dtrain_status_t status =
        dtrain_allreduce(world, &furthest, &furthest, 1, DTRAIN_I64, DTRAIN_MAX, NULL, NULL);
    if (status != DTRAIN_OK) return status;
    model_t taken = *model; /* this may fail, too, and leave anything in its buffer */
    status = dtrain_broadcast(world, taken.weights, length, DTRAIN_F32, (int32_t)(furthest % size),
                              NULL, NULL);
    if (status != DTRAIN_OK) return status;
    taken.step = furthest / size;
    *model = taken;
    return DTRAIN_OK;
}

int main(void) {
    static model_t model;
    dtrain_context_t *context;
    dtrain_comm_t *world, *smaller;
    int agreed = 0;
    check(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    check(dtrain_comm_create(context, NULL, NULL, &world));
    const int rank = dtrain_comm_rank(world), last = dtrain_comm_size(world) - 1;

    while (model.step < steps) {
        if (rank == last && model.step == steps_of_the_last_rank) raise(SIGKILL);
        dtrain_status_t status =
            agreed ? train(world, &model, (float)(rank + 1)) : agree(world, &model);
        agreed = status == DTRAIN_OK;
        if (agreed) continue;
        char why[512];
        int32_t lost[most_ranks], count;
        /* quoted: when a rank dies */
        dtrain_last_error(why, sizeof why);
        if (status != DTRAIN_ERR_PEER && status != DTRAIN_ERR_ABORTED &&
            status != DTRAIN_ERR_TIMEOUT)
            give_up(status, why); /* DTRAIN_ERR_FENCED: the others went on without this rank */
        check(dtrain_comm_shrink(world, &smaller)); /* all who are left call it */
        if (dtrain_comm_size(smaller) == dtrain_comm_size(world))
            give_up(status, why); /* nobody is lost */
        count = dtrain_comm_failed(world, lost, most_ranks);
        for (int32_t i = 0; i < count && i < most_ranks; i++)
            printf("rank %d is lost: %s\n", lost[i], why);
        check(dtrain_comm_destroy(world));
        world = smaller; /* agree on the step, and go on */
        /* quoted so far */
    }
    printf("rank %d of %d: %lld steps, weight %.1f\n", dtrain_comm_rank(world),
           dtrain_comm_size(world), (long long)model.step, (double)model.weights[length - 1]);
    check(dtrain_comm_destroy(world));
    check(dtrain_context_destroy(context));
    return EXIT_SUCCESS;
}
