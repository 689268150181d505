/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset.h"

#include "dtrain.h"
#include "status.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

static int append(dataset_t *set, size_t *capacity, const sample_t *sample) {
    if (set->count == *capacity) {
        size_t larger = *capacity == 0 ? 1024 : 2 * *capacity;
        sample_t *moved = realloc(set->samples, larger * sizeof *moved);
        if (moved == NULL) return report_text("out of memory");
        set->samples = moved;
        *capacity = larger;
    }
    set->samples[set->count++] = *sample;
    return 0;
}

static int read_all(dataset_t *set, dtrain_reader_t *reader) {
    const void *data;
    uint64_t length;
    size_t capacity = 0;
    dtrain_status_t status;
    while ((status = dtrain_reader_next(reader, &data, &length)) == DTRAIN_OK) {
        sample_t sample;
        const char *wrong = example_decode(data, length, &sample);
        if (wrong != NULL) {
            fprintf(stderr, "record %zu: %s\n", set->count, wrong);
            return -1;
        }
        if (append(set, &capacity, &sample) != 0) return -1;
    }
    return status == DTRAIN_ERR_NOT_FOUND ? 0 : report(status, "reading the data");
}

int dataset_load(dataset_t *set, const char *folder, const char *pattern, int shard, int shards) {
    char path[4096];
    glob_t files;
    dtrain_reader_t *reader;
    dtrain_reader_params_t params;
    *set = (dataset_t){0};
    snprintf(path, sizeof path, "%s/%s", folder, pattern);
    if (glob(path, 0, NULL, &files) != 0) {
        fprintf(stderr, "no file %s\n", path);
        return -1;
    }
    DTRAIN_INIT(&params);
    params.shard = shard;
    params.shards = shards;
    int result = report(dtrain_reader_open((const char *const *)files.gl_pathv,
                                           (uint32_t)files.gl_pathc, &params, &reader),
                        "opening the data");
    globfree(&files);
    if (result != 0) return result;
    result = read_all(set, reader);
    dtrain_reader_close(reader);
    if (result == 0 && set->count == 0) {
        fprintf(stderr, "no record in %s for shard %d of %d\n", path, shard, shards);
        result = -1;
    }
    if (result != 0) dataset_free(set);
    return result;
}

void dataset_free(dataset_t *set) {
    free(set->samples);
    *set = (dataset_t){0};
}

uint64_t random_next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Fisher and Yates. The modulo's bias is far below what matters for training. */
void shuffle(size_t *order, size_t count, uint64_t seed) {
    for (size_t i = 0; i < count; i++) order[i] = i;
    for (size_t i = count; i > 1; i--) {
        size_t j = random_next(&seed) % i, kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
}
