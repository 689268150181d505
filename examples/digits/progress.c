/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 16 };
static const double interval = 0.1; /* seconds between two drawings */

double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_begin(progress_t *progress, const char *label, int epochs, int shown) {
    *progress = (progress_t){label, epochs, shown, shown && isatty(STDOUT_FILENO), 0};
}

static void draw(progress_t *progress, double done, const point_t *now) {
    static const char full[] = "################", empty[] = "----------------";
    int filled = (int)(WIDTH * done / progress->epochs);
    printf("\r%-9s [%.*s%.*s] %2d/%d  loss %.4f  accuracy %4.1f %%  %6.0f samples/s\033[K",
           progress->label, filled, full, WIDTH - filled, empty, (int)done, progress->epochs,
           now->loss, 100 * now->accuracy, now->rate);
    fflush(stdout);
    progress->due = now_seconds() + interval;
}

void progress_step(progress_t *progress, double done, const point_t *now) {
    if (progress->bar && now_seconds() >= progress->due) draw(progress, done, now);
}

void progress_epoch(progress_t *progress, const point_t *now) {
    if (progress->bar) {
        draw(progress, now->epoch, now);
    } else if (progress->shown) {
        printf("%s: epoch %d/%d  loss %.4f  accuracy %.1f %%  %.0f samples/s\n", progress->label,
               now->epoch, progress->epochs, now->loss, 100 * now->accuracy, now->rate);
        fflush(stdout);
    }
}

void progress_end(progress_t *progress) {
    if (progress->bar) printf("\n");
}
