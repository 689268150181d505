/* An MPI in the comparison; compiled once by each MPI's own compiler driver, which gives PEER_NAME.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <mpi.h>
#include <string.h>

/* The default error handler of MPI_COMM_WORLD ends the job. */
static void allreduce(void *self, float *buffer, size_t count) {
    (void)self;
    MPI_Allreduce(MPI_IN_PLACE, buffer, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
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
    const contender_t contender = {.name = PEER_NAME,
                                   .version = version,
                                   .rank = rank,
                                   .size = size,
                                   .allreduce = allreduce,
                                   .exchange = allreduce,
                                   .barrier = barrier};
    const int result = harness_run(&contender, argc, argv);
    MPI_Finalize();
    return result;
}
