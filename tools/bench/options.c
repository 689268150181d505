/* Parses the command line of dtrain-bench.
 * SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "operation.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dtrain-bench [option ...], or dtrain-bench tune [--out FILE]\n"
    "Measures operations between the ranks of a job (started by dtrain-run) or between threads.\n"
    "  --operations A,B     (allreduce; \"all\"): %s\n"
    "  --sizes A,B          bytes, with K, M, G (4,1K,16K,64K,1M,16M); for operations with one\n"
    "                       block per rank, the size of all blocks together\n"
    "  --threads N          N ranks, as threads of this process\n"
    "  --dtype D            f32 f64 f16 bf16 i8 u8 i16 u16 i32 u32 i64 u64 (f32)\n"
    "  --op O               sum avg min max (sum)\n"
    "  --in-place           all-reduce in place\n"
    "  --iterations N       samples per size (1000 below 64K, 100 to 1M, 20 below 64M, else 7)\n"
    "  --format F           table csv json (table)\n"
    "Every rank rewrites its buffer before each operation; from 64K on a barrier follows. The\n"
    "time of a sample is that of the slowest rank; point to point, half of a round trip. Results\n"
    "are verified after an untimed run and after the last sample.\n";

typedef struct name {
    const char *name;
    uint32_t value;
} name_t;

static const name_t dtypes[] = {{"f32", DTRAIN_F32},
                                {"f64", DTRAIN_F64},
                                {"f16", DTRAIN_F16},
                                {"bf16", DTRAIN_BF16},
                                {"i8", DTRAIN_I8},
                                {"u8", DTRAIN_U8},
                                {"i16", DTRAIN_I16},
                                {"u16", DTRAIN_U16},
                                {"i32", DTRAIN_I32},
                                {"u32", DTRAIN_U32},
                                {"i64", DTRAIN_I64},
                                {"u64", DTRAIN_U64},
                                {NULL, 0}};
static const name_t ops[] = {
    {"sum", DTRAIN_SUM}, {"avg", DTRAIN_AVG}, {"min", DTRAIN_MIN}, {"max", DTRAIN_MAX}, {NULL, 0}};
static const name_t formats[] = {
    {"table", FORMAT_TABLE}, {"csv", FORMAT_CSV}, {"json", FORMAT_JSON}, {NULL, 0}};

static int invalid(const char *option, const char *value) {
    fprintf(stderr, "dtrain-bench: --%s %s: not a valid value (see --help)\n", option, value);
    return -1;
}

static const name_t *find(const name_t *names, const char *name) {
    while (names->name != NULL && strcmp(names->name, name) != 0) names++;
    return names->name != NULL ? names : NULL;
}

static int parse_count(const char *option, int max, int *count) {
    char *end;
    long value = strtol(optarg, &end, 10);
    if (end == optarg || *end != 0 || value < 1 || value > max) return invalid(option, optarg);
    *count = (int)value;
    return 0;
}

static int parse_sizes(const char *text, options_t *o) {
    const char *at = text;
    for (o->size_count = 0; o->size_count < MAX_SIZES; at++) {
        char *end;
        uint64_t value = strtoull(at, &end, 10);
        const char *unit = *end != 0 && *end != ',' ? strchr("KMG", *end) : NULL;
        if (end == at || value == 0 || value > 1u << 30) break;
        if (unit != NULL) {
            value <<= unit[0] == 'K' ? 10 : unit[0] == 'M' ? 20 : 30;
            end++;
        }
        if (value > (uint64_t)1 << 36) break;
        o->sizes[o->size_count++] = value;
        at = end;
        if (*at == 0) return 0;
        if (*at != ',') break;
    }
    return invalid("sizes", text);
}

static int parse_name(const char *option, const name_t *names, const char **name, uint32_t *value) {
    const name_t *found = find(names, optarg);
    if (found == NULL) return invalid(option, optarg);
    *name = found->name;
    *value = found->value;
    return 0;
}

static void print_usage(void) {
    char names[512] = "";
    for (const operation_t *op = operations; op->name != NULL; op++)
        strcat(strcat(names, op == operations ? "" : ","), op->name);
    printf(usage, names);
}

int options_parse(options_t *o, int argc, char **argv) {
    enum { OPERATIONS, SIZES, THREADS, DTYPE, OP, IN_PLACE, ITERATIONS, FORMAT, VERSION, HELP };
    static const struct option known[] = {{"operations", 1, NULL, OPERATIONS},
                                          {"sizes", 1, NULL, SIZES},
                                          {"threads", 1, NULL, THREADS},
                                          {"dtype", 1, NULL, DTYPE},
                                          {"op", 1, NULL, OP},
                                          {"in-place", 0, NULL, IN_PLACE},
                                          {"iterations", 1, NULL, ITERATIONS},
                                          {"format", 1, NULL, FORMAT},
                                          {"version", 0, NULL, VERSION},
                                          {"help", 0, NULL, HELP},
                                          {NULL, 0, NULL, 0}};
    const char *format_name;
    uint32_t format = FORMAT_TABLE;
    int option, result;
    *o = (options_t){.operations = "allreduce",
                     .dtype = DTRAIN_F32,
                     .op = DTRAIN_SUM,
                     .dtype_name = "f32",
                     .op_name = "sum"};
    result = parse_sizes("4,1K,16K,64K,1M,16M", o);
    while (result == 0 && (option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case OPERATIONS: o->operations = optarg; break;
        case SIZES: result = parse_sizes(optarg, o); break;
        case THREADS: result = parse_count("threads", MAX_THREADS, &o->threads); break;
        case DTYPE: result = parse_name("dtype", dtypes, &o->dtype_name, &o->dtype); break;
        case OP: result = parse_name("op", ops, &o->op_name, &o->op); break;
        case IN_PLACE: o->in_place = 1; break;
        case ITERATIONS: result = parse_count("iterations", 1000000, &o->iterations); break;
        case FORMAT: result = parse_name("format", formats, &format_name, &format); break;
        case VERSION: printf("dtrain-bench %s\n", dtrain_version_string()); return 1;
        case HELP: print_usage(); return 1;
        default: return -1; /* getopt_long() has printed the reason */
        }
    }
    o->format = (int)format;
    return result == 0 && optind < argc ? invalid("", argv[optind]) : result;
}
