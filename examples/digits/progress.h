/* How training goes, live: a bar on a terminal, else a line per epoch.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PROGRESS_H
#define PROGRESS_H
#include "curve.h"

typedef struct progress {
    const char *label;
    int epochs;
    int shown;  /* 0: this rank shows nothing */
    int bar;    /* stdout is a terminal */
    double due; /* when the bar may be drawn again, seconds of now_seconds() */
} progress_t;

void progress_begin(progress_t *progress, const char *label, int epochs, int shown);
/* The state of now; done: epochs, with fractions. May be called as often as one likes. */
void progress_step(progress_t *progress, double done, const point_t *now);
void progress_epoch(progress_t *progress, const point_t *now);
void progress_end(progress_t *progress);

double now_seconds(void); /* monotonic */

#endif
