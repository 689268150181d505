/* How fast tables are saved and restored, next to writing and reading the same bytes.
 * usage: dtrain-run -n 1 -s S -- bench_checkpoint FOLDER [MIB]
 * A dense table of so many MiB (1024) and a sparse one of 1 M rows of 64 floats; medians of some
 * rounds. The servers' option checkpoint.directory is FOLDER, too; the checkpoints are left there.
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 20, ROUNDS = 3, DIM = 64, ROWS = 1000000, AT_ONCE = 10000 };

static void check(int fine, const char *what) {
    if (fine) return;
    perror(what);
    exit(EXIT_FAILURE);
}

/* Seconds to write and sync a file, and to read it. */
static void floors(const char *folder, uint64_t bytes, double *write_p, double *read_p) {
    char path[4096];
    char *piece = malloc(PIECE);
    snprintf(path, sizeof path, "%s/floor", folder);
    check(piece != NULL, "malloc");
    memset(piece, 1, PIECE);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    check(fd >= 0, path);
    double begin = now_us();
    for (uint64_t at = 0; at < bytes; at += PIECE) check(write(fd, piece, PIECE) == PIECE, path);
    check(fsync(fd) == 0, path);
    *write_p = 1e-6 * (now_us() - begin);
    close(fd);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    check(fd >= 0, path);
    begin = now_us();
    for (uint64_t at = 0; at < bytes; at += PIECE) check(read(fd, piece, PIECE) == PIECE, path);
    *read_p = 1e-6 * (now_us() - begin);
    close(fd);
    check(unlink(path) == 0, path);
    free(piece);
}

/* A virtual machine's memory that its host has yet to back comes at a fraction of the speed. */
static void touch(uint64_t bytes) {
    char *memory = malloc(bytes);
    check(memory != NULL, "malloc");
    for (uint64_t at = 0; at < bytes; at += 4096) ((volatile char *)memory)[at] = 1;
    free(memory);
}

static double median(double *values) {
    sort(values, ROUNDS);
    return values[ROUNDS / 2];
}

static void measure(dtrain_table_t *table, const char *folder, const char *what, uint64_t bytes) {
    double written[ROUNDS], read[ROUNDS], saved[ROUNDS], restored[ROUNDS];
    static uint64_t step = 0;
    for (int r = 0; r < ROUNDS; r++) {
        floors(folder, bytes, &written[r], &read[r]);
        double begin = now_us();
        MUST(dtrain_checkpoint_save(&table, 1, ++step, NULL, NULL));
        saved[r] = 1e-6 * (now_us() - begin);
        begin = now_us();
        MUST(dtrain_checkpoint_restore(&table, 1, step, NULL, NULL));
        restored[r] = 1e-6 * (now_us() - begin);
    }
    const double gb = 1e-9 * (double)bytes;
    printf("%-24s %5.2f GB: save %5.2f GB/s (writing and syncing alone %5.2f), restore %5.2f "
           "(reading alone %5.2f)\n",
           what, gb, gb / median(saved), gb / median(written), gb / median(restored),
           gb / median(read));
    fflush(stdout);
}

static void dense(dtrain_comm_t *comm, const char *folder, uint64_t bytes) {
    dtrain_table_t *table = NULL;
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = bytes / sizeof(float);
    params.initial = 1;
    MUST(dtrain_table_create(comm, "dense", &params, &table));
    measure(table, folder, "dense", bytes);
    MUST(dtrain_table_destroy(table));
}

static void sparse(dtrain_comm_t *comm, const char *folder) {
    static uint64_t keys[AT_ONCE];
    dtrain_table_t *table = NULL;
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.dim = DIM;
    MUST(dtrain_table_create(comm, "sparse", &params, &table));
    float *values = calloc((size_t)AT_ONCE * DIM, sizeof *values);
    check(values != NULL, "calloc");
    for (uint64_t first = 0; first < ROWS; first += AT_ONCE) {
        for (uint64_t i = 0; i < AT_ONCE; i++) keys[i] = (first + i) * 0x9e3779b97f4a7c15u;
        MUST(dtrain_table_push_rows(table, keys, AT_ONCE, values, NULL, NULL));
    }
    measure(table, folder, "sparse, 1 M rows of 64",
            ROWS * (sizeof(uint64_t) + DIM * sizeof(float)) / PIECE * PIECE);
    free(values);
    MUST(dtrain_table_destroy(table));
}

int main(int argc, char **argv) {
    dtrain_context_t *context = NULL;
    dtrain_comm_t *comm = NULL;
    if (argc < 2) {
        fprintf(stderr, "usage: bench_checkpoint FOLDER [MIB]\n");
        return EXIT_FAILURE;
    }
    MUST(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    MUST(dtrain_comm_create(context, NULL, NULL, &comm));
    const uint64_t bytes = (argc > 2 ? strtoull(argv[2], NULL, 10) : 1024) << 20;
    touch(8 * bytes);
    dense(comm, argv[1], bytes);
    sparse(comm, argv[1]);
    MUST(dtrain_comm_destroy(comm));
    MUST(dtrain_context_destroy(context));
    return EXIT_SUCCESS;
}
