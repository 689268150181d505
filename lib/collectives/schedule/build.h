// Makes one rank's schedule of a collective.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/call/collective.h"

namespace dtrain::collectives {

// Pure: the schedule depends on the arguments only, and all ranks that build with the same
// algorithm and specs that agree fit together. `out` is replaced. The result is bitwise equal on
// all ranks and in every run for an operator that is commutative bit by bit (as IEEE sums are); it
// need not be associative. UNSUPPORTED when the algorithm does not do this kind, or not for so many
// ranks or these counts; else the errors of validate().
Status build(const CollectiveSpec &spec, Algorithm algorithm, engine::Schedule &out);

// Whether build() can do it for every count (v-variants: `uniform` false).
bool supports(Kind kind, Algorithm algorithm, int32_t size, bool uniform = true);

} // namespace dtrain::collectives
