/* Prints each result as soon as it is measured.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_PRINT_H
#define BENCH_PRINT_H
#include "measure.h"

void print_begin(const bench_t *bench);
void print_result(const bench_t *bench, const operation_t *operation, uint64_t bytes,
                  const result_t *result);
void print_end(const bench_t *bench);

#endif
