/* FNV-1a of a string, letter by letter, mixed at the end since its high bits are weak.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WORDS_HASH_H
#define WORDS_HASH_H
#include <stdint.h>

#define HASH_BEGIN 0xcbf29ce484222325u
static inline uint64_t hash_add(uint64_t hash, char letter) {
    return (hash ^ (unsigned char)letter) * 0x100000001b3u;
}
static inline uint64_t hash_end(uint64_t hash) {
    hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
    return hash ^ hash >> 32;
}

#endif
