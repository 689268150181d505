/* Sums of vectors over all ranks, from and to registered memory; DTRAIN_EXPLAIN=1 says by which
 * algorithm.
 *
 *     dtrain-run -n 2 -- rdma_allreduce [TRANSPORTS]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rdma_example.h"

enum { LARGEST = 1 << 20, ENOUGH = 1 << 21 }; /* elements */

/* Small integers: their sums are exact in any order. */
static float value(int rank, int round, int i) {
    return (float)((i + 5 * round) % 1000 * (rank + 1));
}

static double allreduce(dtrain_comm_t *comm, const dtrain_op_params_t *op, float *vector, int count,
                        int rounds) {
    const int rank = dtrain_comm_rank(comm), size = dtrain_comm_size(comm);
    double time = 0;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++) vector[i] = value(rank, round, i);
        check(dtrain_barrier(comm, NULL, NULL),
              "barrier"); /* nobody waits for who is still filling */
        double start = seconds();
        check(dtrain_allreduce(comm, vector, vector, (uint64_t)count, DTRAIN_F32, DTRAIN_SUM, op,
                               NULL),
              "all-reduce");
        time += seconds() - start;
        for (int i = 0; i < count; i++) {
            float sum = value(0, round, i) * (float)(size * (size + 1) / 2);
            if (vector[i] == sum) continue;
            fprintf(stderr, "rank %d: element %d of %d is %g instead of %g\n", rank, i, count,
                    vector[i], sum);
            exit(1);
        }
    }
    return time / rounds;
}

int main(int argc, char **argv) {
    dtrain_context_t *context;
    dtrain_comm_t *comm = join(argc, argv, &context);
    dtrain_mem_t *memory;
    dtrain_op_params_t op;
    check(dtrain_mem_alloc(context, LARGEST * sizeof(float), &memory), "memory");
    DTRAIN_INIT(&op);
    op.send_mem = op.recv_mem = memory;

    if (dtrain_comm_rank(comm) == 0) printf("%10s %12s %12s\n", "bytes", "us", "MB/s");
    for (int count = 16; count <= LARGEST; count *= 16) {
        int rounds = ENOUGH / count < 200 ? ENOUGH / count : 200;
        float *vector = dtrain_mem_address(memory);
        allreduce(comm, &op, vector, count, 1); /* connects, and warms up */
        double time = allreduce(comm, &op, vector, count, rounds),
               bytes = (double)count * sizeof(float);
        if (dtrain_comm_rank(comm) == 0)
            printf("%10.0f %12.2f %12.1f\n", bytes, time * 1e6, bytes / time * 1e-6);
    }
    check(dtrain_mem_deregister(memory), "memory");
    leave(comm, context);
    return 0;
}
