// Reduces any number of ranks to a power of two, for algorithms that require one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>

namespace dtrain::collectives {

// With n = 2^k + extra ranks, the first 2 * extra of them form pairs (0, 1), (2, 3), ...: one rank
// of a pair sends its data to the other, the keeper, and waits for the result. The 2^k keepers and
// unpaired ranks are the participants, numbered in the order of their ranks. The keeper is the odd
// rank of a pair, unless the even one is `favorite` (which thus always participates).
class Fold {
  public:
    Fold(int32_t size, int32_t rank, int32_t favorite = -1)
        : participants(int32_t(std::bit_floor(uint32_t(size)))), extra_(size - participants),
          favorite_(favorite), paired(rank < 2 * extra_),
          keeper(!paired || rank == rank_of(index_of(rank))), mate(rank ^ 1),
          index(index_of(rank)) {}

    int32_t index_of(int32_t rank) const { return rank < 2 * extra_ ? rank / 2 : rank - extra_; }
    int32_t rank_of(int32_t participant) const {
        if (participant >= extra_) return participant + extra_;
        return 2 * participant == favorite_ ? favorite_ : 2 * participant + 1;
    }
    // The first rank whose data the participant holds. The participants together cover 0 .. size.
    int32_t first_rank(int32_t participant) const {
        return participant < extra_ ? 2 * participant : participant + extra_;
    }

    const int32_t participants;

  private:
    const int32_t extra_, favorite_;

  public:
    const bool paired;   // has a mate
    const bool keeper;   // participates
    const int32_t mate;  // meaningful if paired
    const int32_t index; // of the participant; a rank that is not a keeper has its keeper's
};

} // namespace dtrain::collectives
