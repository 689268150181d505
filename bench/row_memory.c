/* What rows of a sparse table take in a server.
 * usage: dtrain-run -n 1 -s 1 -- bench_row_memory add|adagrad [ROWS [DIM]]
 * Makes so many rows (10,000,000) of so many floats (16), and prints by how much the server's
 * resident memory has grown, next to the bytes of keys, rows and the rule's state.
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"
#include "resident.h"

#include <string.h>

static void measure(dtrain_comm_t *comm, const char *rule_name, uint32_t rule, uint64_t rows,
                    uint32_t dim) {
    enum { AT_ONCE = 10000 };
    static uint64_t keys[AT_ONCE];
    const pid_t server = server_pid();
    dtrain_table_t *table = NULL;
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.dim = dim;
    params.rule = rule;
    float *values = calloc((size_t)AT_ONCE * dim, sizeof *values);
    if (values == NULL) exit(EXIT_FAILURE);
    const long before = resident_kib(server);
    MUST(dtrain_table_create(comm, rule_name, &params, &table));
    for (uint64_t first = 0; first < rows; first += AT_ONCE) {
        const uint64_t n = rows - first < AT_ONCE ? rows - first : AT_ONCE;
        for (uint64_t i = 0; i < n; i++) keys[i] = (first + i) * 0x9e3779b97f4a7c15u;
        MUST(dtrain_table_push_rows(table, keys, n, values, NULL, NULL));
    }
    const double numbers = (rule == DTRAIN_RULE_ADD ? 1.0 : 2.0) * dim;
    const double raw = (double)rows * (sizeof(uint64_t) + numbers * sizeof(float)) / 1048576;
    const double taken = (double)(resident_kib(server) - before) / 1024;
    printf("%llu rows of %u floats, %s: %.0f MiB of keys, rows and state; the server has %.0f MiB "
           "more, %.3f times as much\n",
           (unsigned long long)rows, dim, rule_name, raw, taken, taken / raw);
    fflush(stdout);
    MUST(dtrain_table_destroy(table));
    free(values);
}

int main(int argc, char **argv) {
    const int adagrad = argc > 1 && strcmp(argv[1], "adagrad") == 0;
    const uint64_t rows = argc > 2 ? strtoull(argv[2], NULL, 10) : 10000000;
    const uint32_t dim = argc > 3 ? (uint32_t)atoi(argv[3]) : 16;
    dtrain_context_t *context = NULL;
    dtrain_comm_t *comm = NULL;
    if (!adagrad && (argc < 2 || strcmp(argv[1], "add") != 0)) {
        fprintf(stderr, "usage: bench_row_memory add|adagrad [ROWS [DIM]]\n");
        return EXIT_FAILURE;
    }
    MUST(dtrain_context_create(DTRAIN_API_VERSION, NULL, &context));
    MUST(dtrain_comm_create(context, NULL, NULL, &comm));
    measure(comm, argv[1], adagrad ? DTRAIN_RULE_ADAGRAD : DTRAIN_RULE_ADD, rows, dim);
    MUST(dtrain_comm_destroy(comm));
    MUST(dtrain_context_destroy(context));
    return EXIT_SUCCESS;
}
