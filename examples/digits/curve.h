/* The loss curve of one run, as a CSV file.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CURVE_H
#define CURVE_H
#include <stdio.h>

typedef struct point {
    int epoch;        /* finished */
    double seconds;   /* since training began */
    double loss;      /* mean over the epoch's training samples */
    double accuracy;  /* of the test set, 0..1 */
    double rate;      /* training samples per second of all workers, since the beginning */
    double megabytes; /* given to and taken from the library by this worker */
    double sent;      /* all-reduce: megabytes that it sent to the others, without headers */
} point_t;

/* `path` may be NULL: then nothing is written. 0, or -1 with the reason on stderr. */
int curve_open(FILE **file, const char *path);
void curve_add(FILE *file, const point_t *point);
int curve_close(FILE *file, const char *path);

#endif
