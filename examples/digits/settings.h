/* What the command line says.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SETTINGS_H
#define SETTINGS_H
#include <stddef.h>
#include <stdint.h>

typedef struct settings {
    const char *mode;        /* single, allreduce, async, ssp or bsp */
    const char *data;        /* folder of the .tfrecord files */
    const char *compression; /* of the gradients in mode allreduce; see reduce.h */
    const char *curve;       /* CSV file for the loss curve, or NULL */
    int epochs;
    int batch; /* samples per step over all workers */
    int hidden;
    int staleness; /* ssp: in steps */
    double rate, momentum;
    uint64_t seed;
} settings_t;

/* 0; -1 with the reason on stderr; 1 when --help was asked for. */
int settings_parse(settings_t *settings, int argc, char **argv);

#endif
