// The parameters that a table's values and state depend on. A checkpoint records them, and can only
// be restored into a table with the same ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table/table_params.h"

#include <string>
#include <vector>

namespace dtrain::ps {

struct MadeWith {
    std::string name, value;
    std::string usual = {}; // omitted if it has this value, as in older files; "": never omitted
};
// The fields that must be equal in both tables: the constants of the rule (or of each segment's
// rule), whose updates are counted (steps), the seed of stochastic rounding, and the initial rows
// of a sparse table. Parameters that users change between runs, and that only affect later pushes,
// are not among them: the learning rate, its schedule, clipping, decay, and l1 and l2 except those
// of FTRL, whose values are computed from its state with them.
std::vector<MadeWith> made_with(const TableParams &params);

} // namespace dtrain::ps
