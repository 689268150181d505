/* Trains a classifier of handwritten digits in one of five ways.
 * SPDX-License-Identifier: Apache-2.0 */
#include "status.h"
#include "trainer.h"

#include <stdlib.h>
#include <string.h>

static int join(trainer_t *t) {
    if (report(dtrain_context_create(DTRAIN_API_VERSION, NULL, &t->context), "starting") != 0 ||
        report(dtrain_comm_create(t->context, NULL, NULL, &t->comm), "joining the job") != 0)
        return -1;
    t->rank = dtrain_comm_rank(t->comm);
    t->size = dtrain_comm_size(t->comm);
    return 0;
}

static int load(trainer_t *t, int whole) {
    const char *folder = t->settings.data;
    if (dataset_load(&t->train, folder, "train-*.tfrecord", whole ? 0 : t->rank,
                     whole ? 1 : t->size) != 0)
        return -1;
    return t->rank == 0 ? dataset_load(&t->test, folder, "test.tfrecord", 0, 1) : 0;
}

static int prepare(trainer_t *t) {
    if (mlp_create(&t->mlp, (size_t)t->settings.hidden) != 0) return -1;
    t->count = mlp_parameters(&t->mlp);
    t->parameters = malloc(t->count * sizeof(float));
    t->gradient = malloc((t->count + 2) * sizeof(float));
    if (t->parameters == NULL || t->gradient == NULL) return report_text("out of memory");
    mlp_initialize(&t->mlp, t->parameters, t->settings.seed);
    progress_begin(&t->progress, t->settings.mode, t->settings.epochs, t->rank == 0);
    if (t->rank == 0 && curve_open(&t->curve, t->settings.curve) != 0) return -1;
    if (t->comm != NULL && report(dtrain_barrier(t->comm, NULL, NULL), "starting together") != 0)
        return -1;
    t->start = now_seconds();
    return 0;
}

static int run(trainer_t *t) {
    const int single = strcmp(t->settings.mode, "single") == 0;
    const int synchronous = single || strcmp(t->settings.mode, "allreduce") == 0;
    if ((!single && join(t) != 0) || load(t, synchronous) != 0 || prepare(t) != 0) return -1;
    int result = synchronous ? train_synchronously(t) : train_with_table(t);
    progress_end(&t->progress);
    return result;
}

static int clean_up(trainer_t *t) {
    int result = curve_close(t->curve, t->settings.curve);
    free(t->parameters);
    free(t->gradient);
    mlp_free(&t->mlp);
    dataset_free(&t->train);
    dataset_free(&t->test);
    if (t->comm != NULL) result |= report(dtrain_comm_destroy(t->comm), "leaving the job");
    if (t->context != NULL) result |= report(dtrain_context_destroy(t->context), "stopping");
    return result;
}

int main(int argc, char **argv) {
    trainer_t trainer = {.size = 1};
    int result = settings_parse(&trainer.settings, argc, argv);
    if (result != 0) return result > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    result = run(&trainer);
    result |= clean_up(&trainer);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
