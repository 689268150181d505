/* Tables through the public API: latency, dense GB/s and sparse keys/s of each worker.
 * usage: dtrain-run -n N -s S -- bench_tables [NAME] [SECTION...]; sections: latency dense small
 * rows lookups narrow (wire dtypes and storage dtypes next to f32; GB/s of the caller's f32).
 * Prints NAME, what, size, value, unit; medians over samples, of rank 0. bench/tables runs it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 15, MOST_AT_ONCE = 64 };
static const double sample_us = 40e3;

typedef struct job {
    const char *name;
    dtrain_comm_t *comm;
} job_t;

/* How a table of f32 is kept, and travels. */
typedef struct kind {
    const char *name;
    uint32_t storage, wire;
} kind_t;
static const kind_t kinds[] = {{"", 0, 0},
                               {" wire f16", 0, DTRAIN_F16},
                               {" wire i8", 0, DTRAIN_I8},
                               {" stored f16", DTRAIN_F16, 0},
                               {" stored i8", DTRAIN_I8, 0},
                               {" both f16", DTRAIN_F16, DTRAIN_F16},
                               {" both i8", DTRAIN_I8, DTRAIN_I8}};

typedef enum operation { PUSH, PULL, PUSH_PULL } operation_t;
static const char *const operation_names[] = {"push", "pull", "push_pull"};

/* What is done again and again, at_once of them in flight. */
typedef struct load {
    dtrain_table_t *table;
    operation_t operation;
    uint64_t count;       /* elements; keys                            */
    const uint64_t *keys; /* of a sparse table: many batches, in turns */
    uint64_t batches, next;
    float *values; /* at_once buffers */
    uint64_t stride;
    int at_once;
} load_t;

static void start(load_t *load, int i, dtrain_request_t **request_p) {
    float *values = load->values + (uint64_t)i * load->stride;
    dtrain_table_t *table = load->table;
    if (load->keys != NULL) {
        const uint64_t *keys = load->keys + load->next++ % load->batches * load->count;
        if (load->operation == PUSH)
            MUST(dtrain_table_push_rows(table, keys, load->count, values, NULL, request_p));
        else if (load->operation == PULL)
            MUST(dtrain_table_pull_rows(table, keys, load->count, values, NULL, request_p));
        else
            MUST(dtrain_table_push_pull_rows(table, keys, load->count, values, values, NULL,
                                             request_p));
        return;
    }
    const uint64_t first = (uint64_t)i * load->count;
    if (load->operation == PUSH)
        MUST(dtrain_table_push(table, first, load->count, values, NULL, request_p));
    else if (load->operation == PULL)
        MUST(dtrain_table_pull(table, first, load->count, values, NULL, request_p));
    else
        MUST(dtrain_table_push_pull(table, first, load->count, values, values, NULL, request_p));
}

/* Microseconds per operation in a run of that many: one after the other, or always so many in
 * flight. */
static double time_of(load_t *load, uint64_t operations) {
    dtrain_request_t *requests[MOST_AT_ONCE];
    const uint64_t at_once = (uint64_t)load->at_once;
    const double begin = now_us();
    for (uint64_t n = 0; n < operations; n++) {
        const int i = (int)(n % at_once);
        if (at_once > 1 && n >= at_once) {
            MUST(dtrain_request_wait(requests[i], -1));
            dtrain_request_free(requests[i]);
        }
        start(load, i, at_once > 1 ? &requests[i] : NULL);
    }
    for (uint64_t i = 0; at_once > 1 && i < at_once && i < operations; i++) {
        MUST(dtrain_request_wait(requests[i], -1));
        dtrain_request_free(requests[i]);
    }
    return (now_us() - begin) / (double)operations;
}

static double median_us(const job_t *job, load_t *load) {
    double samples[SAMPLES];
    const uint64_t few = (uint64_t)load->at_once * 2;
    time_of(load, few);
    const double guess = time_of(load, few);
    uint64_t operations = (uint64_t)(sample_us / guess) + 1;
    if (operations < few) operations = few;
    for (int s = 0; s < SAMPLES; s++) {
        MUST(dtrain_barrier(job->comm, NULL, NULL));
        samples[s] = time_of(load, operations);
    }
    sort(samples, SAMPLES);
    return samples[SAMPLES / 2];
}

static void print(const job_t *job, const char *what, uint64_t size, double value,
                  const char *unit) {
    if (dtrain_comm_rank(job->comm) != 0) return;
    printf("%s\t%s\t%llu\t%.4g\t%s\n", job->name, what, (unsigned long long)size, value, unit);
    fflush(stdout);
}

static dtrain_table_t *make_table(const job_t *job, uint64_t length, uint32_t dim, uint32_t rule,
                                  const kind_t *kind) {
    dtrain_table_params_t params;
    dtrain_table_t *table = NULL;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = length;
    params.dim = dim;
    params.rule = rule;
    params.storage_dtype = kind->storage;
    params.wire_dtype = kind->wire;
    MUST(dtrain_table_create(job->comm, "bench", &params, &table));
    return table;
}

static float *make_values(uint64_t count) {
    float *values = aligned_alloc(2 << 20, (count * sizeof *values + (2 << 20) - 1) >> 21 << 21);
    if (values == NULL) exit(EXIT_FAILURE);
    for (uint64_t i = 0; i < count; i++) values[i] = 1;
    return values;
}

/* ---- dense ---- */

static void dense(const job_t *job, const kind_t *kind, const char *suffix, uint64_t bytes,
                  int at_once, int as_rate) {
    const uint64_t count = bytes / sizeof(float);
    dtrain_table_t *table = make_table(job, count * (uint64_t)at_once, 0, DTRAIN_RULE_ADD, kind);
    float *values = make_values(count * (uint64_t)at_once);
    for (int operation = PUSH; operation <= PUSH_PULL; operation++) {
        load_t load = {.table = table,
                       .operation = (operation_t)operation,
                       .count = count,
                       .values = values,
                       .stride = count,
                       .at_once = at_once};
        const double us = median_us(job, &load);
        char what[64];
        snprintf(what, sizeof what, "%s%s%s", operation_names[operation], kind->name, suffix);
        if (as_rate)
            print(job, what, bytes, 1 / us, "M/s");
        else if (at_once == 1 && bytes < 1 << 16)
            print(job, what, bytes, us, "us");
        else
            print(job, what, bytes, 1e-3 * (double)bytes / us, "GB/s");
    }
    free(values);
    MUST(dtrain_table_destroy(table));
}

/* ---- rows ---- */

static uint64_t random_state = 88172645463325252u;
static double uniform(void) { /* Marsaglia 2003: xorshift; in [0, 1) */
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (double)(random_state >> 11) * 0x1p-53;
}

/* Keys of rows 0 to rows - 1: uniform, or the more often the lower (Zipf's law with exponent 1, by
 * the inverse of its continuous form). */
static uint64_t *make_keys(uint64_t count, uint64_t rows, int zipf) {
    uint64_t *keys = malloc(count * sizeof *keys);
    if (keys == NULL) exit(EXIT_FAILURE);
    for (uint64_t i = 0; i < count; i++) {
        const double row = zipf ? pow((double)rows, uniform()) - 1 : (double)rows * uniform();
        keys[i] = (uint64_t)row * 0x9e3779b97f4a7c15u;
    }
    return keys;
}

/* kind: NULL for plain f32 with all sizes of batches. */
enum { ROWS = 1000000, KEYS = 2000000, FILL = 10000 };

static dtrain_table_t *filled_table(const job_t *job, uint32_t dim, uint32_t rule,
                                    const kind_t *kind, const float *values) {
    dtrain_table_t *table = make_table(job, 0, dim, rule, kind);
    uint64_t *every = malloc(ROWS * sizeof *every);
    if (every == NULL) exit(EXIT_FAILURE);
    for (uint64_t i = 0; i < ROWS; i++) every[i] = i * 0x9e3779b97f4a7c15u;
    for (uint64_t i = 0; i < ROWS; i += FILL)
        MUST(dtrain_table_push_rows(table, every + i, FILL, values, NULL, NULL));
    free(every);
    return table;
}

/* Few keys a call, as one who serves a model asks for. */
static void lookups(const job_t *job) {
    enum { DIM = 16 };
    static const uint64_t batches[] = {1, 8, 64};
    static const int at_once[] = {1, 16, 64};
    float *values = make_values((uint64_t)FILL * DIM);
    dtrain_table_t *table = filled_table(job, DIM, DTRAIN_RULE_ADD, &kinds[0], values);
    uint64_t *keys = make_keys(KEYS, ROWS, 0);
    for (int b = 0; b < 3; b++)
        for (int n = 0; n < 3; n++) {
            load_t load = {.table = table,
                           .operation = PULL,
                           .count = batches[b],
                           .keys = keys,
                           .batches = KEYS / batches[b],
                           .values = values,
                           .stride = 64 * DIM,
                           .at_once = at_once[n]};
            const double us = median_us(job, &load);
            char what[96];
            snprintf(what, sizeof what, "lookup rows dim %d, %d at once", DIM, at_once[n]);
            print(job, what, batches[b], (double)batches[b] / us, "Mkeys/s");
        }
    free(keys);
    free(values);
    MUST(dtrain_table_destroy(table));
}

static void rows(const job_t *job, const kind_t *kind, uint32_t dim, uint32_t rule) {
    static const uint64_t batches[] = {1, 64, 4096, 10000};
    const int at_once = 4, all = kind == NULL; /* else large batches of uniform keys */
    float *values = make_values((uint64_t)at_once * FILL * dim);
    dtrain_table_t *table = filled_table(job, dim, rule, all ? &kinds[0] : kind, values);
    for (int zipf = 0; zipf < 1 + all; zipf++) {
        uint64_t *keys = make_keys(KEYS, ROWS, zipf);
        for (int b = 0; b < 4; b++)
            for (int n = 1; n <= at_once; n += at_once - 1)
                for (int operation = PUSH; operation <= PULL; operation++) {
                    if (rule != DTRAIN_RULE_ADD && (operation == PULL || batches[b] < FILL))
                        continue;
                    if (!all && (batches[b] < FILL || n == 1)) continue;
                    load_t load = {.table = table,
                                   .operation = (operation_t)operation,
                                   .count = batches[b],
                                   .keys = keys,
                                   .batches = KEYS / batches[b],
                                   .values = values,
                                   .stride = FILL * dim,
                                   .at_once = n};
                    const double us = median_us(job, &load);
                    char what[96];
                    snprintf(what, sizeof what, "%s rows dim %u%s%s%s%s",
                             operation_names[operation], dim, all ? "" : kind->name,
                             rule == DTRAIN_RULE_ADD ? "" : " adagrad", zipf ? " zipf" : "",
                             n > 1 ? " in flight" : "");
                    print(job, what, batches[b], (double)batches[b] / us, "Mkeys/s");
                }
        free(keys);
    }
    free(values);
    MUST(dtrain_table_destroy(table));
}

static int wanted(int argc, char **argv, const char *section) {
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], section) == 0) return 1;
    return argc < 3;
}

int main(int argc, char **argv) {
    job_t job = {.name = argc > 1 ? argv[1] : "dtrain"};
    dtrain_context_t *context = NULL;
    MUST(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    MUST(dtrain_comm_create(context, NULL, NULL, &job.comm));
    if (wanted(argc, argv, "latency")) {
        dense(&job, &kinds[0], "", 4, 1, 0);
        dense(&job, &kinds[0], "", 4096, 1, 0);
    }
    if (wanted(argc, argv, "small")) dense(&job, &kinds[0], " in flight", 4, 64, 1);
    if (wanted(argc, argv, "dense")) {
        dense(&job, &kinds[0], " in flight", 4 << 10, 32, 0);
        dense(&job, &kinds[0], " in flight", 64 << 10, 16, 0);
        dense(&job, &kinds[0], " in flight", 1 << 20, 8, 0);
        dense(&job, &kinds[0], "", 64 << 20, 1, 0);
    }
    if (wanted(argc, argv, "rows")) {
        rows(&job, NULL, 16, DTRAIN_RULE_ADD);
        rows(&job, NULL, 64, DTRAIN_RULE_ADD);
        rows(&job, NULL, 64, DTRAIN_RULE_ADAGRAD);
    }
    if (wanted(argc, argv, "lookups")) lookups(&job);
    for (size_t k = 0; argc > 2 && wanted(argc, argv, "narrow") && k < sizeof kinds / sizeof *kinds;
         k++) {
        dense(&job, &kinds[k], " in flight", 1 << 20, 8, 0);
        rows(&job, &kinds[k], 64, DTRAIN_RULE_ADD);
    }
    MUST(dtrain_comm_destroy(job.comm));
    MUST(dtrain_context_destroy(context));
    return EXIT_SUCCESS;
}
