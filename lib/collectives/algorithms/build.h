// Builds one rank's schedule of a collective.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/algorithms/algorithm.h"

namespace dtrain::collectives {

// Pure: the schedule depends only on the arguments, and the schedules of all ranks fit together if
// their specs agree and the algorithm is the same. `out` is replaced. The result is bitwise equal
// on all ranks and in every run if the operator is bitwise commutative (as IEEE sums are); it need
// not be associative. UNSUPPORTED if the algorithm does not support this kind, this number of ranks
// or these counts; otherwise the errors of validate().
Status build(const CollectiveSpec &spec, Algorithm algorithm, engine::Schedule &out);

// Whether build() supports this for every count. uniform: false for v-variants.
bool supports(Kind kind, Algorithm algorithm, int32_t size, bool uniform = true);

} // namespace dtrain::collectives
