/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include "reduce.h"
#include "status.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: digits [option ...]\n"
    "  --mode single|allreduce|async|ssp|bsp  how to train (single)\n"
    "  --compression none|f16|bf16|int8|topk|onebit|powersgd|scaled|adasum\n"
    "                   mode allreduce: how gradients are reduced (none)\n"
    "  --data FOLDER    the .tfrecord files (examples/digits/data)\n"
    "  --curve FILE     write the loss curve there, as CSV\n"
    "  --epochs N       (40)\n"
    "  --batch N        samples per step over all workers (64)\n"
    "  --hidden N       units of the hidden layer (256)\n"
    "  --rate X         learning rate (0.1)\n"
    "  --momentum X     (0.9)\n"
    "  --staleness N    ssp: steps that a worker may be ahead (2)\n"
    "  --seed N         of weights and order (1)\n"
    "All modes but single join the job that the environment describes (see dtrain-run).\n";

static int invalid(const char *name, const char *value, const char *allowed) {
    fprintf(stderr, "--%s %s: must be %s\n", name, value, allowed);
    return -1;
}

static int parse_int(const char *name, const char *value, int min, int *number) {
    char *end;
    long parsed = strtol(value, &end, 10);
    if (end == value || *end != 0 || parsed < min || parsed > INT_MAX)
        return invalid(name, value, min == 0 ? "a number, 0 or more" : "a number, 1 or more");
    *number = (int)parsed;
    return 0;
}

static int parse_real(const char *name, const char *value, double *number) {
    char *end;
    double parsed = strtod(value, &end);
    if (end == value || *end != 0 || !(parsed >= 0 && parsed <= 1000))
        return invalid(name, value, "a number from 0 to 1000");
    *number = parsed;
    return 0;
}

static int parse_mode(const char *value, const char **mode) {
    static const char *const modes[] = {"single", "allreduce", "async", "ssp", "bsp"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(value, modes[i]) == 0) {
            *mode = modes[i];
            return 0;
        }
    return invalid("mode", value, "single, allreduce, async, ssp or bsp");
}

static int parse_compression(const char *value, const char **compression) {
    *compression = reduce_find(value);
    return *compression != NULL ? 0 : invalid("compression", value, "one of those of --help");
}

int settings_parse(settings_t *s, int argc, char **argv) {
    enum {
        MODE,
        COMPRESSION,
        DATA,
        CURVE,
        EPOCHS,
        BATCH,
        HIDDEN,
        RATE,
        MOMENTUM,
        STALENESS,
        SEED,
        HELP
    };
    static const struct option options[] = {{"mode", 1, NULL, MODE},
                                            {"compression", 1, NULL, COMPRESSION},
                                            {"data", 1, NULL, DATA},
                                            {"curve", 1, NULL, CURVE},
                                            {"epochs", 1, NULL, EPOCHS},
                                            {"batch", 1, NULL, BATCH},
                                            {"hidden", 1, NULL, HIDDEN},
                                            {"rate", 1, NULL, RATE},
                                            {"momentum", 1, NULL, MOMENTUM},
                                            {"staleness", 1, NULL, STALENESS},
                                            {"seed", 1, NULL, SEED},
                                            {"help", 0, NULL, HELP},
                                            {NULL, 0, NULL, 0}};
    *s = (settings_t){.mode = "single",
                      .compression = "none",
                      .data = "examples/digits/data",
                      .epochs = 40,
                      .batch = 64,
                      .hidden = 256,
                      .staleness = 2,
                      .rate = 0.1,
                      .momentum = 0.9,
                      .seed = 1};
    int seed = 1, result = 0, option, index = 0;
    while (result == 0 && (option = getopt_long(argc, argv, "", options, &index)) != -1) {
        const char *name = options[index].name;
        switch (option) {
        case MODE: result = parse_mode(optarg, &s->mode); break;
        case COMPRESSION: result = parse_compression(optarg, &s->compression); break;
        case DATA: s->data = optarg; break;
        case CURVE: s->curve = optarg; break;
        case EPOCHS: result = parse_int(name, optarg, 1, &s->epochs); break;
        case BATCH: result = parse_int(name, optarg, 1, &s->batch); break;
        case HIDDEN: result = parse_int(name, optarg, 1, &s->hidden); break;
        case RATE: result = parse_real(name, optarg, &s->rate); break;
        case MOMENTUM: result = parse_real(name, optarg, &s->momentum); break;
        case STALENESS: result = parse_int(name, optarg, 0, &s->staleness); break;
        case SEED: result = parse_int(name, optarg, 0, &seed); break;
        case HELP: fputs(usage, stdout); return 1;
        default: return -1; /* getopt_long() has said why */
        }
    }
    if (result == 0 && optind < argc) result = invalid("", argv[optind], "an option (--help)");
    s->seed = (uint64_t)seed;
    return result;
}
