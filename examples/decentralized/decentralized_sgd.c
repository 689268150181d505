/* Decentralized gradient descent: every rank keeps a model of its own, fits it to its own data and
 * averages it with its neighbors; there is no server and no all-reduce. Compares graphs.
 *
 *     dtrain-run -n 16 -- decentralized_sgd
 *
 * Source of the method: Lian, Zhang, Zhang, Hsieh, Zhang, Liu: Can decentralized algorithms
 * outperform centralized algorithms? NIPS 2017.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtrain.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { features = 200, samples = 100, steps = 400 };

/* Linear regression on this rank's samples: targets = inputs * (what is to be learnt) + noise. */
static double inputs[samples][features], targets[samples];

static void check(dtrain_status_t status, const char *what) {
    char text[512];
    if (status == DTRAIN_OK) return;
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s: %s\n", what, dtrain_status_name(status), text);
    exit(1);
}

static double uniform(uint64_t *state) { /* in -1 to 1; an LCG of Knuth's */
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int32_t)(*state >> 32) / 2147483648.0;
}

/* Ranks see different parts of the world: their data alone would teach them different models. */
static void make_data(int rank) {
    uint64_t common = 1, own = (uint64_t)rank + 2;
    double truth[features];
    for (int j = 0; j < features; j++) truth[j] = uniform(&common);
    for (int i = 0; i < samples; i++) {
        targets[i] = uniform(&own);
        for (int j = 0; j < features; j++) {
            inputs[i][j] = uniform(&own) * sqrt(3.0 / features);
            targets[i] += inputs[i][j] * truth[j];
        }
    }
}

/* Half the mean square of the errors on this rank's data, and its gradient unless that is NULL. */
static double loss(const double *model, double *gradient) {
    double sum = 0;
    for (int j = 0; gradient != NULL && j < features; j++) gradient[j] = 0;
    for (int i = 0; i < samples; i++) {
        double error = -targets[i];
        for (int j = 0; j < features; j++) error += inputs[i][j] * model[j];
        sum += error * error / (2 * samples);
        for (int j = 0; gradient != NULL && j < features; j++)
            gradient[j] += error * inputs[i][j] / samples * features;
    }
    return sum;
}

/* The loss of the mean of all models on all data, and how far the models are from that mean. */
static double judge(dtrain_comm_t *comm, const double *model, double *spread) {
    double mean[features], both[2] = {0, 0};
    check(dtrain_allreduce(comm, model, mean, features, DTRAIN_F64, DTRAIN_AVG, NULL, NULL),
          "all-reduce");
    both[0] = loss(mean, NULL);
    for (int j = 0; j < features; j++)
        both[1] += (model[j] - mean[j]) * (model[j] - mean[j]) / features;
    check(dtrain_allreduce(comm, both, both, 2, DTRAIN_F64, DTRAIN_AVG, NULL, NULL), "all-reduce");
    *spread = sqrt(both[1]);
    return both[0];
}

/* Trains from zero over a graph of this kind; returns the loss in the end. */
static double train(dtrain_comm_t *comm, uint32_t kind, const char *name) {
    double model[features] = {0}, gradient[features], spread = 0, gap = 0;
    dtrain_graph_t *graph = NULL;
    dtrain_graph_params_t params;
    DTRAIN_INIT(&params);
    params.kind = kind;
    check(dtrain_graph_create(comm, &params, &graph), "graph");
    for (int step = 0; step < steps; step++) {
        double rate = 0.3 / (1 + step / 20.0);
        dtrain_request_t *averaged = NULL;
        double mixed[features];
        /* The neighbors' models travel while the gradient is computed. */
        check(dtrain_neighbor_average(graph, model, mixed, features, DTRAIN_F64, NULL, &averaged),
              "average");
        (void)loss(model, gradient);
        check(dtrain_request_wait(averaged, -1), "average");
        dtrain_request_free(averaged);
        for (int j = 0; j < features; j++) model[j] = mixed[j] - rate * gradient[j];
    }
    double end = judge(comm, model, &spread);
    int32_t neighbors = dtrain_graph_neighbors(graph, DTRAIN_GRAPH_OUT, NULL, NULL, 0);
    check(dtrain_graph_spectral_gap(graph, &gap), "spectral gap");
    if (dtrain_comm_rank(comm) == 0)
        printf("%-12s %4d %8.4f %10.6f %10.2e\n", name, neighbors, gap, end, spread);
    dtrain_graph_destroy(graph);
    return end;
}

int main(void) {
    dtrain_context_t *context = NULL;
    dtrain_comm_t *comm = NULL;
    check(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context), "context");
    check(dtrain_comm_create(context, NULL, NULL, &comm), "join");
    make_data(dtrain_comm_rank(comm));
    if (dtrain_comm_rank(comm) == 0)
        printf("%d ranks, %d steps\n%-12s %4s %8s %10s %10s\n", dtrain_comm_size(comm), steps,
               "graph", "to", "gap", "loss", "spread");
    double best = train(comm, DTRAIN_GRAPH_FULL, "full"); /* what an all-reduce would do */
    double ring = train(comm, DTRAIN_GRAPH_RING, "ring");
    double grid = train(comm, DTRAIN_GRAPH_GRID, "grid");
    double exponential = train(comm, DTRAIN_GRAPH_EXPONENTIAL, "exponential");
    check(dtrain_comm_destroy(comm), "leave");
    check(dtrain_context_destroy(context), "context");
    /* Each graph has to come to nearly the same model. */
    double worst = fmax(ring, fmax(grid, exponential));
    if (!(worst <= 1.01 * best)) fprintf(stderr, "a loss of %g instead of %g\n", worst, best);
    return worst <= 1.01 * best ? 0 : 1;
}
