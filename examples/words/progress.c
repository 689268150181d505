/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include "status.h"

#include <time.h>

static const double interval = 5; /* seconds between two lines */

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_begin(trainer_t *t) { t->start = t->told = now_seconds(); }

static int print(trainer_t *t) {
    totals_t sum;
    uint64_t in = 0, out = 0;
    TRY(dtrain_table_pull(t->totals, 0, sizeof sum / sizeof(double), &sum, NULL, NULL));
    TRY(dtrain_table_count_rows(t->in, &in, NULL, NULL));
    TRY(dtrain_table_count_rows(t->out, &out, NULL, NULL));
    const double all = (double)t->all * t->size, seconds = now_seconds() - t->start;
    printf("%3.0f %% of %d epochs  loss %.3f  %.0f words/s  %llu + %llu rows\n",
           100 * sum.words / all, t->epochs,
           (sum.loss - t->last.loss) / (sum.neighbors - t->last.neighbors), sum.words / seconds,
           (unsigned long long)in, (unsigned long long)out);
    fflush(stdout);
    t->last = sum;
    t->told = now_seconds();
    return 0;
}

int progress_tell(trainer_t *t) {
    return t->rank == 0 && now_seconds() - t->told > interval ? print(t) : 0;
}

int progress_end(trainer_t *t) { return t->rank == 0 ? print(t) : 0; }
