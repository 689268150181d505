/* dtrain-bench: measures how long collectives, tables and messages take.
 * SPDX-License-Identifier: Apache-2.0 */
#include "print.h"
#include "threads.h"
#include "tune.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_FOR_SMALL_TYPES = 127 / 3 };

static int wanted(const options_t *options, const char *name) {
    const size_t length = strlen(name);
    if (strcmp(options->operations, "all") == 0) return 1;
    for (const char *at = options->operations; at != NULL; at = strchr(at, ',')) {
        if (*at == ',') at++;
        if (strncmp(at, name, length) == 0 && (at[length] == 0 || at[length] == ',')) return 1;
    }
    return 0;
}

/* Returns 0, or -1 with the reason on stderr: a name that is no operation. */
static int check_names(const options_t *options) {
    char names[1024], *rest = NULL;
    if (strcmp(options->operations, "all") == 0) return 0;
    snprintf(names, sizeof names, "%s", options->operations);
    for (char *name = strtok_r(names, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest)) {
        const operation_t *op = operations;
        while (op->name != NULL && strcmp(op->name, name) != 0) op++;
        if (op->name != NULL) continue;
        fprintf(stderr, "dtrain-bench: --operations: there is no operation \"%s\" (see --help)\n",
                name);
        return -1;
    }
    return 0;
}

static int bench_rank(const options_t *options, dtrain_comm_t *comm) {
    bench_t bench = {.options = options,
                     .comm = comm,
                     .rank = dtrain_comm_rank(comm),
                     .size = dtrain_comm_size(comm)};
    /* Sums of the pattern must be exact to be verified. */
    if (dtrain_dtype_size(options->dtype) == 1 || options->dtype == DTRAIN_BF16)
        if (options->op == DTRAIN_SUM && bench.size > MOST_FOR_SMALL_TYPES) {
            fprintf(stderr, "dtrain-bench: %s sums cannot be verified with more than %d ranks\n",
                    options->dtype_name, MOST_FOR_SMALL_TYPES);
            return -1;
        }
    if (bench.rank == 0) print_begin(&bench);
    for (const operation_t *op = operations; op->name != NULL; op++) {
        if (!wanted(options, op->name) || (op->traits & PAIR && bench.size < 2)) continue;
        for (int i = 0; i < (op->traits & SIZELESS ? 1 : options->size_count); i++) {
            const uint64_t bytes = op->traits & SIZELESS ? 0 : options->sizes[i];
            result_t result;
            if (measure(&bench, op, bytes, &result) != 0) return -1;
            if (bench.rank == 0) print_result(&bench, op, bytes, &result);
        }
    }
    if (bench.rank == 0) print_end(&bench);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "tune") == 0) return tune_main(argc - 1, argv + 1);
    options_t options;
    int result = options_parse(&options, argc, argv);
    if (result == 0) result = check_names(&options);
    if (result != 0) return result > 0 ? EXIT_SUCCESS : 2;
    result =
        options.threads > 0 ? run_threads(&options, bench_rank) : run_process(&options, bench_rank);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
