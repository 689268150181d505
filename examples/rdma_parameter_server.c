/* A model in a parameter server: in each step every worker pushes the gradient of its own loss,
 * half of the squared distance to its own target, and pulls the model that the servers have made of
 * all of them. It has to come to the mean of the targets.
 *
 *     dtrain-run -n 2 -- rdma_parameter_server [TRANSPORTS]       the workers serve
 *     DTRAIN_TRANSPORTS=ofi dtrain-run -n 2 -s 1 -- rdma_parameter_server
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rdma_example.h"

#include <math.h>

enum { LENGTH = 256 * 1024, STEPS = 30 };

static float target(int rank, int i) { return (float)((i + 3 * rank) % 11); }

static double train(dtrain_table_t *table, int rank, float *model, float *gradient,
                    const dtrain_op_params_t *op) {
    check(dtrain_table_pull(table, 0, LENGTH, model, op, NULL), "pull");
    double start = seconds();
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < LENGTH; i++) gradient[i] = model[i] - target(rank, i);
        /* One round trip to each server; it waits until all workers' gradients are in the model. */
        check(dtrain_table_push_pull(table, 0, LENGTH, gradient, model, op, NULL), "push_pull");
    }
    return seconds() - start;
}

/* How far the model is from where it should be. */
static double error_of(const float *model, int workers) {
    double worst = 0;
    for (int i = 0; i < LENGTH; i++) {
        double mean = 0;
        for (int rank = 0; rank < workers; rank++) mean += target(rank, i) / workers;
        worst = fmax(worst, fabs(model[i] - mean));
    }
    return worst;
}

int main(int argc, char **argv) {
    dtrain_context_t *context;
    dtrain_comm_t *comm = join(argc, argv, &context);
    const int rank = dtrain_comm_rank(comm), workers = dtrain_comm_size(comm);

    dtrain_table_t *table;
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = LENGTH;
    params.rule = DTRAIN_RULE_SGD;
    params.learning_rate = 0.5;
    params.consistency = DTRAIN_BSP;
    params.aggregate = DTRAIN_AVG;
    check(dtrain_table_create(comm, "model", &params, &table), "table");

    dtrain_mem_t *memory; /* the network card reads gradients and writes models there */
    dtrain_op_params_t op;
    check(dtrain_mem_alloc(context, 2 * LENGTH * sizeof(float), &memory), "memory");
    DTRAIN_INIT(&op);
    op.send_mem = op.recv_mem = memory;
    float *model = dtrain_mem_address(memory);

    double time = train(table, rank, model, model + LENGTH, &op);
    double error = error_of(model, workers);
    if (rank == 0)
        printf("%d steps of %zu bytes: %.2f ms each; the model is within %.2g of the best\n", STEPS,
               LENGTH * sizeof(float), time / STEPS * 1e3, error);
    check(dtrain_table_destroy(table), "table");
    check(dtrain_mem_deregister(memory), "memory");
    leave(comm, context);
    return !(error < 1e-4);
}
