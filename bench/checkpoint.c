/* How fast tables are saved and restored, next to writing and reading the same bytes; how long
 * requests wait meanwhile.
 * usage: dtrain-run -n 1 -s S -- bench_checkpoint FOLDER [MIB]
 * A dense table of so many MiB (1024) and a sparse one of 1 M rows of 64 floats; medians of some
 * rounds.
 * usage: dtrain-run -n 2 -s S -- bench_checkpoint FOLDER [MIB]
 * A dense table and a sparse one whose rule is ADAM, of so many MiB with their state: one worker
 * saves them some times, while the other pushes and pulls and says how long that took: the longest,
 * and of a thousand the second longest.
 * The servers' option checkpoint.directory is FOLDER, too; the checkpoints are left there.
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

/* ---- what requests wait ---- */

enum { SAVES = 4, MOST_CALLS = 4000000, SPAN = 16384, BATCH = 256 };

/* One of the calls, or saves. */
typedef struct span {
    double begin, end;
} span_t;

typedef struct load {
    dtrain_table_t *table;
    uint64_t keys; /* 0: it is dense */
    uint64_t length;
} load_t;

static void call_once(const load_t *load, int pulls) {
    static float values[SPAN];
    static uint64_t keys[BATCH];
    if (load->keys == 0) {
        const uint64_t first = (uint64_t)rand() % (load->length / SPAN) * SPAN;
        if (pulls)
            MUST(dtrain_table_pull(load->table, first, SPAN, values, NULL, NULL));
        else
            MUST(dtrain_table_push(load->table, first, SPAN, values, NULL, NULL));
        return;
    }
    for (int i = 0; i < BATCH; i++) keys[i] = (uint64_t)rand() % load->keys * 0x9e3779b97f4a7c15u;
    if (pulls)
        MUST(dtrain_table_pull_rows(load->table, keys, BATCH, values, NULL, NULL));
    else
        MUST(dtrain_table_push_rows(load->table, keys, BATCH, values, NULL, NULL));
}

/* Saves, and leaves in a file when, which ends the other's calls. */
static void save_some_times(dtrain_table_t *table, const char *folder, const char *path) {
    static uint64_t step = 1000;
    char draft[4096];
    span_t saves[SAVES];
    const struct timespec pause = {.tv_sec = 2};
    for (int s = 0; s < SAVES; s++) {
        nanosleep(&pause, NULL);
        saves[s].begin = now_us();
        MUST(dtrain_checkpoint_save(&table, 1, ++step, NULL, NULL));
        saves[s].end = now_us();
    }
    snprintf(draft, sizeof draft, "%s/saves.tmp", folder);
    FILE *file = fopen(draft, "w");
    check(file != NULL && fwrite(saves, sizeof saves, 1, file) == 1 && fclose(file) == 0, draft);
    check(rename(draft, path) == 0, path);
}

static void print_waits(const char *when, const span_t *calls, size_t count, span_t during) {
    double *took = malloc(count * sizeof *took);
    size_t n = 0;
    check(took != NULL, "malloc");
    for (size_t i = 0; i < count; i++)
        if (calls[i].end > during.begin && calls[i].begin < during.end)
            took[n++] = 1e-3 * (calls[i].end - calls[i].begin);
    if (n > 0) {
        sort(took, n);
        printf("  %-12s %6.2f s, %7zu calls: median %7.3f ms, 99.9 %% %7.3f, longest %7.3f\n", when,
               1e-6 * (during.end - during.begin), n, took[n / 2], took[n - 1 - n / 1000],
               took[n - 1]);
    }
    free(took);
}

static void call_until_saved(const load_t *load, const char *path) {
    span_t *calls = malloc(MOST_CALLS * sizeof *calls);
    span_t saves[SAVES];
    size_t count = 0;
    check(calls != NULL, "malloc");
    while (count < MOST_CALLS && access(path, F_OK) != 0) {
        calls[count].begin = now_us();
        call_once(load, count % 2);
        calls[count++].end = now_us();
    }
    FILE *file = NULL;
    while ((file = fopen(path, "r")) == NULL) sleep(1);
    check(fread(saves, sizeof saves, 1, file) == 1 && fclose(file) == 0, path);
    print_waits("before", calls, count, (span_t){calls[0].begin, saves[0].begin});
    for (int s = 0; s < SAVES; s++) {
        char when[16];
        snprintf(when, sizeof when, "save %d", s + 1);
        print_waits(when, calls, count, saves[s]);
    }
    fflush(stdout);
    free(calls);
}

static void measure_waits(dtrain_comm_t *comm, const char *folder, const char *what, load_t load) {
    char path[4096];
    snprintf(path, sizeof path, "%s/saves-%s", folder, what);
    if (dtrain_comm_rank(comm) == 0) unlink(path);
    MUST(dtrain_barrier(comm, NULL, NULL));
    if (dtrain_comm_rank(comm) == 0) {
        save_some_times(load.table, folder, path);
    } else {
        printf("%s: one worker saves, the other pushes and pulls\n", what);
        call_until_saved(&load, path);
    }
    MUST(dtrain_barrier(comm, NULL, NULL));
    MUST(dtrain_table_destroy(load.table));
}

static void waits(dtrain_comm_t *comm, const char *folder, uint64_t bytes) {
    enum { ARRAYS = 3 }; /* values and two moments */
    load_t load = {.length = bytes / ARRAYS / sizeof(float) / SPAN * SPAN};
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.rule = DTRAIN_RULE_ADAM;
    params.length = load.length;
    MUST(dtrain_table_create(comm, "dense", &params, &load.table));
    float *values = calloc((size_t)AT_ONCE * DIM, sizeof *values);
    check(values != NULL, "calloc");
    for (uint64_t at = 0; at < load.length && dtrain_comm_rank(comm) == 0; at += SPAN)
        MUST(dtrain_table_push(load.table, at, SPAN, values, NULL, NULL));
    measure_waits(comm, folder, "dense", load);

    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.rule = DTRAIN_RULE_ADAM;
    params.dim = DIM;
    MUST(dtrain_table_create(comm, "sparse", &params, &load.table));
    load.keys = bytes / (ARRAYS * DIM * sizeof(float)) / AT_ONCE * AT_ONCE;
    static uint64_t keys[AT_ONCE];
    for (uint64_t first = 0; first < load.keys && dtrain_comm_rank(comm) == 0; first += AT_ONCE) {
        for (uint64_t i = 0; i < AT_ONCE; i++) keys[i] = (first + i) * 0x9e3779b97f4a7c15u;
        MUST(dtrain_table_push_rows(load.table, keys, AT_ONCE, values, NULL, NULL));
    }
    free(values);
    measure_waits(comm, folder, "sparse", load);
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
    if (dtrain_comm_size(comm) > 1) {
        waits(comm, argv[1], bytes);
    } else {
        touch(8 * bytes);
        dense(comm, argv[1], bytes);
        sparse(comm, argv[1]);
    }
    MUST(dtrain_comm_destroy(comm));
    MUST(dtrain_context_destroy(context));
    return EXIT_SUCCESS;
}
