/* The verb tune: measures the machine and writes a tuning file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune.h"

#include "threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dtrain-run -n N -- dtrain-bench tune [--out FILE]\n"
    "Measures the machine with the ranks of this job and writes the parameters of the library's\n"
    "cost model to FILE (dtrain.tuning). DTRAIN_TUNING_FILE=FILE makes the library use it.\n";

static const char *out = "dtrain.tuning";

static void print_file(void) {
    char line[512];
    FILE *file = fopen(out, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) fputs(line, stdout);
    if (file != NULL) fclose(file);
}

static int tune_rank(const options_t *options, dtrain_comm_t *comm) {
    const dtrain_status_t status = dtrain_comm_tune(comm, out);
    (void)options;
    if (status != DTRAIN_OK) {
        char text[512];
        dtrain_last_error(text, sizeof text);
        fprintf(stderr, "dtrain-bench: %s (%s)\n", text, dtrain_status_name(status));
        return -1;
    }
    if (dtrain_comm_rank(comm) == 0) print_file();
    return 0;
}

int tune_main(int argc, char **argv) {
    const options_t options = {0};
    const int help = argc == 2 && strcmp(argv[1], "--help") == 0;
    if (argc == 3 && strcmp(argv[1], "--out") == 0) out = argv[2];
    if (help || (argc != 1 && argc != 3) || (argc == 3 && out != argv[2])) {
        fputs(usage, help ? stdout : stderr);
        return help ? EXIT_SUCCESS : 2;
    }
    return run_process(&options, tune_rank) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
