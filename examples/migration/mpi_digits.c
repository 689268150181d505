/* Handwritten digits as a program of MPI trains them. The call of MPI that each line replaces
 * stands beside it.
 *
 *     mpirun -n 4 mpi_digits FOLDER        srun -n 4 mpi_digits FOLDER
 *     dtrain-run -n 4 -- mpi_digits FOLDER                                FOLDER:
 * examples/digits/data
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dataset.h"
#include "dtrain.h"
#include "mlp.h"
#include "status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 64, BATCH = 32, EPOCHS = 20, DONE_TAG = 7 };
static const float rate = 0.1f, momentum = 0.9f;

typedef struct job {
    dtrain_context_t *context;
    dtrain_comm_t *world;
    int rank, size;
} job_t;

/* Instead of a handler of errors: MPI ends all processes at the first error unless one is set. Here
 * every call returns its error, and this program ends all ranks by it. */
static void check(const job_t *job, dtrain_status_t status, const char *what) {
    if (report(status, what) == 0) return;
    dtrain_comm_abort(job->world, what); /* MPI_Abort: the others' calls fail with this reason */
    exit(1);
}

static void start(job_t *job) { /* MPI_Init */
    check(job, dtrain_context_create(DTRAIN_API_VERSION, NULL, &job->context), "context");
    check(job, dtrain_comm_create(job->context, NULL, NULL, &job->world), "joining");
    job->rank = dtrain_comm_rank(job->world); /* MPI_Comm_rank */
    job->size = dtrain_comm_size(job->world); /* MPI_Comm_size */
}

static void finish(job_t *job) { /* MPI_Finalize; but others need not come */
    check(job, dtrain_comm_destroy(job->world), "leaving");
    check(job, dtrain_context_destroy(job->context), "ending");
}

/* MPI_Allreduce_init, MPI_Start, MPI_Wait: the gradient has the same place in every step. */
static dtrain_request_t *prepare(const job_t *job, float *gradient, size_t count) {
    dtrain_op_params_t params;
    dtrain_request_t *request;
    DTRAIN_INIT(&params);
    params.flags = DTRAIN_OP_PERSISTENT;
    check(job,
          dtrain_allreduce(job->world, gradient, gradient, count, DTRAIN_F32, DTRAIN_AVG, &params,
                           &request), /* MPI_IN_PLACE is the same buffer; AVG needs no division */
          "preparing the all-reduce");
    return request;
}

static void train(const job_t *job, const dataset_t *set, const mlp_t *mlp, float *w) {
    const size_t count = mlp_parameters(mlp);
    /* All ranks do as many steps as the one with the fewest samples: MPI_Allreduce with MPI_MIN. */
    uint64_t fewest = set->count;
    check(job,
          dtrain_allreduce(job->world, &fewest, &fewest, 1, DTRAIN_U64, DTRAIN_MIN, NULL, NULL),
          "the number of samples");
    float *gradient = malloc(count * sizeof *gradient), *speed = calloc(count, sizeof *speed);
    size_t *order = malloc(set->count * sizeof *order);
    if (gradient == NULL || speed == NULL || order == NULL)
        check(job, DTRAIN_ERR_NO_MEMORY, "the gradient");
    dtrain_request_t *average = prepare(job, gradient, count);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        shuffle(order, set->count, (uint64_t)(job->size * epoch + job->rank));
        for (size_t at = 0; at + BATCH <= fewest; at += BATCH) {
            score_t score = {0, 0};
            memset(gradient, 0, count * sizeof *gradient);
            for (size_t i = at; i < at + BATCH; i++)
                mlp_add(mlp, w, &set->samples[order[i]], gradient, &score);
            check(job, dtrain_request_start(&average, 1),
                  "starting the all-reduce");                           /* MPI_Start */
            check(job, dtrain_request_wait(average, -1), "all-reduce"); /* MPI_Wait */
            for (size_t i = 0; i < count; i++) {
                speed[i] = momentum * speed[i] - rate / BATCH * gradient[i];
                w[i] += speed[i];
            }
        }
    }
    dtrain_request_free(average); /* MPI_Request_free */
    free(gradient);
    free(speed);
    free(order);
}

/* Even and odd ranks each share the test set among themselves; their leaders compare. */
static double test(const job_t *job, const dataset_t *set, const mlp_t *mlp, const float *w) {
    dtrain_comm_t *half;
    check(job, dtrain_comm_split(job->world, job->rank % 2, job->rank, &half), /* MPI_Comm_split */
          "splitting");
    score_t score = {0, 0};
    for (size_t i = (size_t)dtrain_comm_rank(half); i < set->count;
         i += (size_t)dtrain_comm_size(half))
        mlp_add(mlp, w, &set->samples[i], NULL, &score);
    double correct = 0, other;
    check(job,
          dtrain_reduce(half, &score.correct, &correct, 1, DTRAIN_F64, DTRAIN_SUM, 0, NULL, NULL),
          "the number of right answers");                       /* MPI_Reduce */
    check(job, dtrain_comm_destroy(half), "destroying a half"); /* MPI_Comm_free */
    if (job->rank == 1)                                         /* MPI_Send: its leader */
        check(job, dtrain_send(job->world, &correct, 1, DTRAIN_F64, 0, DONE_TAG, NULL, NULL),
              "sending");
    if (job->rank == 0 && job->size > 1) {
        dtrain_request_t *request; /* MPI_Irecv of MPI_ANY_SOURCE; its event has MPI_Status */
        dtrain_event_t event;
        check(job,
              dtrain_recv(job->world, &other, 1, DTRAIN_F64, DTRAIN_ANY_RANK, DONE_TAG, NULL,
                          &request),
              "receiving");
        check(job, dtrain_request_wait(request, -1), "receiving");
        check(job, dtrain_request_result(request, &event), "the sender");
        dtrain_request_free(request);
        if (other != correct) {
            fprintf(stderr, "rank %d counts %g right answers, rank 0 %g\n", event.peer, other,
                    correct);
            correct = 0;
        }
    }
    check(job, dtrain_broadcast(job->world, &correct, 1, DTRAIN_F64, 0, NULL, NULL), "telling");
    return correct / (double)set->count;
}

int main(int count, char **arguments) {
    job_t job = {0};
    dataset_t set, tests;
    mlp_t mlp;
    if (count != 2) return fprintf(stderr, "usage: %s FOLDER\n", arguments[0]), 2;
    start(&job);
    if (dataset_load(&set, arguments[1], "train-*.tfrecord", job.rank, job.size) != 0 ||
        dataset_load(&tests, arguments[1], "test.tfrecord", 0, 1) != 0 ||
        mlp_create(&mlp, HIDDEN) != 0)
        check(&job, DTRAIN_ERR_IO, "the data");
    float *w = malloc(mlp_parameters(&mlp) * sizeof *w);
    if (w == NULL) check(&job, DTRAIN_ERR_NO_MEMORY, "the weights");
    if (job.rank == 0) mlp_initialize(&mlp, w, 1);
    check(&job, dtrain_broadcast(job.world, w, mlp_parameters(&mlp), DTRAIN_F32, 0, NULL, NULL),
          "telling the first weights"); /* MPI_Bcast */
    train(&job, &set, &mlp, w);
    const double accuracy = test(&job, &tests, &mlp, w);
    if (job.rank == 0) printf("%d ranks, %.1f %% of the test set\n", job.size, 100 * accuracy);
    finish(&job);
    free(w);
    mlp_free(&mlp);
    dataset_free(&set);
    dataset_free(&tests);
    return accuracy < 0.95;
}
