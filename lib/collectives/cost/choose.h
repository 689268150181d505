// Which algorithm a collective should use.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/cost/price.h"

#include <optional>
#include <vector>

namespace dtrain::collectives {

struct Candidate {
    Algorithm algorithm;
    double ns; // predicted
};
// The algorithms that support the spec, the cheapest first; in the order of Algorithm when equal.
std::vector<Candidate> candidates(const CollectiveSpec &spec, const NetworkModel &model);

// The cheapest prediction among the algorithms that support the spec; the first one in the order of
// Algorithm when equal. Reads only what is equal on all ranks, so all ranks choose alike if they
// use the same model. `forced` overrides the prediction: UNSUPPORTED when it does not do this.
Status choose(const CollectiveSpec &spec, const NetworkModel &model,
              std::optional<Algorithm> forced, Algorithm &out);

} // namespace dtrain::collectives
