/* SPDX-License-Identifier: Apache-2.0 */
#include "subwords.h"

#include "hash.h"

#include <string.h>

int subwords_of(const char *name, uint64_t keys[MOST_SUBWORDS]) {
    char marked[LONGEST_WORD + 3] = "<";
    const int length = (int)strlen(name) + 2;
    int count = 1;
    strcat(strcat(marked, name), ">");
    for (int first = 0; first < length; first++) {
        uint64_t hash = HASH_BEGIN;
        for (int end = first + 1; end <= length && (first == 0 || end <= first + LONGEST); end++) {
            hash = hash_add(hash, marked[end - 1]);
            if (first == 0 && end == length)
                keys[0] = hash_end(hash);
            else if (end >= first + SHORTEST && end <= first + LONGEST)
                keys[count++] = hash_end(hash);
        }
    }
    return count;
}
