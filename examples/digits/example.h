/* Reads one sample out of an encoded tf.train.Example.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLE_H
#define EXAMPLE_H
#include <stddef.h>
#include <stdint.h>

enum { PIXELS = 64, PIXEL_MAX = 16, CLASSES = 10 };

typedef struct sample {
    float image[PIXELS]; /* 0..1 */
    int32_t label;       /* 0..9 */
} sample_t;

/* Wants features "image" (bytes, PIXELS values of 0..PIXEL_MAX) and "label" (int64); ignores
 * others. NULL, or what is wrong with data[length]; static storage. */
const char *example_decode(const uint8_t *data, size_t length, sample_t *sample);

#endif
