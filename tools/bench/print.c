/* Prints results as a table, CSV or JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "print.h"

#include <stdio.h>

void print_begin(const bench_t *bench) {
    const options_t *o = bench->options;
    if (o->format == FORMAT_CSV)
        printf("operation,ranks,bytes,dtype,op,samples,min_us,median_us,max_us,GB_per_s\n");
    else if (o->format == FORMAT_JSON)
        printf("{\"version\": \"%s\", \"ranks\": %d, \"ranks_are\": \"%s\", \"dtype\": \"%s\", "
               "\"op\": \"%s\", \"in_place\": %s, \"results\": [",
               dtrain_version_string(), bench->size, o->threads > 0 ? "threads" : "processes",
               o->dtype_name, o->op_name, o->in_place ? "true" : "false");
    else
        printf("dtrain %s, %d ranks (%s), %s, %s%s; time of the slowest rank\n\n"
               "%-15s %11s %8s %11s %11s %11s %9s\n",
               dtrain_version_string(), bench->size, o->threads > 0 ? "threads" : "processes",
               o->dtype_name, o->op_name, o->in_place ? ", in place" : "", "operation", "bytes",
               "samples", "min us", "median us", "max us", "GB/s");
}

void print_result(const bench_t *bench, const operation_t *operation, uint64_t bytes,
                  const result_t *r) {
    static int rows; /* only rank 0 prints */
    const options_t *o = bench->options;
    const double rate = (double)bytes / r->median / 1e9;
    const double min = 1e6 * r->min, median = 1e6 * r->median, max = 1e6 * r->max;
    if (o->format == FORMAT_CSV)
        printf("%s,%d,%llu,%s,%s,%d,%.3f,%.3f,%.3f,%.4f\n", operation->name, bench->size,
               (unsigned long long)bytes, o->dtype_name, o->op_name, r->samples, min, median, max,
               rate);
    else if (o->format == FORMAT_JSON)
        printf("%s\n  {\"operation\": \"%s\", \"bytes\": %llu, \"samples\": %d, \"min_us\": %.3f, "
               "\"median_us\": %.3f, \"max_us\": %.3f, \"GB_per_s\": %.4f}",
               rows++ == 0 ? "" : ",", operation->name, (unsigned long long)bytes, r->samples, min,
               median, max, rate);
    else
        printf("%-15s %11llu %8d %11.2f %11.2f %11.2f %9.3f\n", operation->name,
               (unsigned long long)bytes, r->samples, min, median, max, rate);
    fflush(stdout);
}

void print_end(const bench_t *bench) {
    if (bench->options->format == FORMAT_JSON) printf("\n]}\n");
}
