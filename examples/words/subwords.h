/* What the vector of a word is made of: the word, and the runs of letters in it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WORDS_SUBWORDS_H
#define WORDS_SUBWORDS_H
#include "text.h"

enum { SHORTEST = 3, LONGEST = 7, MOST_SUBWORDS = (LONGEST - SHORTEST + 1) * LONGEST_WORD + 1 };

/* Keys of "<name>" and of all that is SHORTEST to LONGEST characters long in it (Bojanowski et al.
 * 2017, Enriching word vectors with subword information), the same in every process. They are
 * hashes of 64 bits: of a million, two are alike with probability 3e-8. The word's own comes first.
 * Returns their number. */
int subwords_of(const char *name, uint64_t keys[MOST_SUBWORDS]);

#endif
