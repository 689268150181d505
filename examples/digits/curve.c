/* SPDX-License-Identifier: Apache-2.0 */
#include "curve.h"

#include <errno.h>
#include <string.h>

int curve_open(FILE **file, const char *path) {
    *file = NULL;
    if (path == NULL) return 0;
    *file = fopen(path, "we");
    if (*file == NULL) {
        fprintf(stderr, "cannot create %s: %s\n", path, strerror(errno));
        return -1;
    }
    fprintf(*file, "epoch,seconds,loss,accuracy,samples_per_second,megabytes,sent\n");
    return 0;
}

void curve_add(FILE *file, const point_t *point) {
    if (file != NULL)
        fprintf(file, "%d,%.6f,%.9g,%.6f,%.1f,%.3f,%.3f\n", point->epoch, point->seconds,
                point->loss, point->accuracy, point->rate, point->megabytes, point->sent);
}

int curve_close(FILE *file, const char *path) {
    if (file == NULL) return 0;
    int failed = ferror(file);
    if (fclose(file) == 0 && !failed) return 0;
    fprintf(stderr, "cannot write %s: %s\n", path, strerror(errno));
    return -1;
}
