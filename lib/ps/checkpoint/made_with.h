// What a table's values and state depend on besides pushes: a checkpoint has it, and may only be
// restored into a table that has the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table/table_params.h"

#include <string>
#include <vector>

namespace dtrain::ps {

struct MadeWith {
    std::string name, value;
    std::string usual = {}; // is not said, as tables did not have it; "": always said
};
// Fields which say the same where they are of two tables of one rule: the constants of the rule (or
// of each segment's), whose updates it counts, the schedule of its rate, the seed of what is
// rounded at random, and of a sparse table what rows begin with. Not what is there to be changed
// between runs, and shows in pushes to come only: the learning rate, clipping, decay, l1 and l2 but
// FTRL's, whose values follow from its state by them.
std::vector<MadeWith> made_with(const TableParams &params);

// The shortest text that is read as the same number, in every locale.
std::string number_text(double number);

} // namespace dtrain::ps
