/* The digits in memory.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_H
#define DATASET_H
#include "example.h"

typedef struct dataset {
    sample_t *samples;
    size_t count;
} dataset_t;

/* Reads the files `pattern` (with * and ?) of the folder, or shard `shard` of `shards` of them. 0,
 * or -1 with the reason on stderr. */
int dataset_load(dataset_t *set, const char *folder, const char *pattern, int shard, int shards);
void dataset_free(dataset_t *set);

/* order[count] becomes a permutation of 0..count-1 that depends on the seed only. */
void shuffle(size_t *order, size_t count, uint64_t seed);
/* splitmix64 (Steele, Lea, Flood 2014). */
uint64_t random_next(uint64_t *state);

#endif
