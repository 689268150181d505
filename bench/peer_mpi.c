/* An MPI in the comparison; compiled once by each MPI's own compiler driver, which gives PEER_NAME.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <mpi.h>
#include <string.h>

/* The default error handler of MPI_COMM_WORLD ends the job. */
static void exchange(void *self, float *values, size_t count) {
    (void)self;
    MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void send_and_return(int rank, float *send, float *recv, int count) {
    if (rank > 1) return;
    if (rank == 0) MPI_Send(send, count, MPI_FLOAT, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(recv, count, MPI_FLOAT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(recv, count, MPI_FLOAT, 0, 0, MPI_COMM_WORLD);
}

static void run(void *self, kind_t kind, float *send, float *recv, size_t elements) {
    const contender_t *contender = self;
    const int count = (int)elements, block = count / contender->size;
    const MPI_Comm comm = MPI_COMM_WORLD;
    switch (kind) {
    case ALLREDUCE: exchange(self, recv, elements); break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_block(send, recv, block, MPI_FLOAT, MPI_SUM, comm);
        break;
    case ALLGATHER: MPI_Allgather(send, block, MPI_FLOAT, recv, block, MPI_FLOAT, comm); break;
    case BROADCAST: MPI_Bcast(recv, count, MPI_FLOAT, 0, comm); break;
    case REDUCE: MPI_Reduce(send, recv, count, MPI_FLOAT, MPI_SUM, 0, comm); break;
    case ALLTOALL: MPI_Alltoall(send, block, MPI_FLOAT, recv, block, MPI_FLOAT, comm); break;
    case SENDRECV: send_and_return(contender->rank, send, recv, count); break;
    default: MPI_Barrier(comm); break;
    }
}

static void barrier(void *self) {
    (void)self;
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = 0;
    for (char *tab = version; (tab = strchr(tab, '\t')) != NULL;) *tab = ' ';
    contender_t contender = {.name = PEER_NAME,
                             .version = version,
                             .rank = rank,
                             .size = size,
                             .run = run,
                             .exchange = exchange,
                             .barrier = barrier};
    contender.self = &contender;
    const int result = harness_run(&contender, argc, argv);
    MPI_Finalize();
    return result;
}
