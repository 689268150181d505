// Chooses the algorithm of a collective.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/cost/price.h"

#include <optional>
#include <vector>

namespace dtrain::collectives {

// Numbers what choose() and piece_bytes() make of the same arguments. Ranks whose libraries differ
// in it would wait for each other's other algorithm, so they make no communicator together. A test
// says when it must change.
inline constexpr uint32_t choice_rules = 1;

struct Candidate {
    Algorithm algorithm;
    double ns; // predicted
};
// The algorithms that support the spec and have a prediction, the cheapest first; equal ones in the
// order of Algorithm.
std::vector<Candidate> candidates(const CollectiveSpec &spec, const NetworkModel &model);

// Simulates the steps, with fewer chunks. NaN if there are too many ranks, if their counts differ,
// or if the algorithm does not support the spec.
double simulated(const CollectiveSpec &spec, Algorithm algorithm, const NetworkModel &model);

// The size of the pieces, at most spec.chunk_bytes: a vector that ranks pass on to each other is on
// its way to the last of them sooner in smaller ones. Where ranks share cores, what each piece
// costs them counts more.
uint64_t piece_bytes(const CollectiveSpec &spec, Algorithm algorithm, const NetworkModel &model);

// Chooses the algorithm with the cheapest prediction among those that support the spec; among
// equals the first in the order of Algorithm. Reads only what is equal on all ranks, so all ranks
// choose the same if they use the same model. `forced` overrides the prediction: UNSUPPORTED if it
// does not support the spec.
Status choose(const CollectiveSpec &spec, const NetworkModel &model,
              std::optional<Algorithm> forced, Algorithm &out);

} // namespace dtrain::collectives
