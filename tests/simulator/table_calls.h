// Calls of a table that one step makes, uses and destroys. All ranks make each of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "more_calls.h"

namespace dtrain::simulator {

// Each returns whether all went well. step: for the table's name.
bool change_consistency(const Here &here, int step, uint64_t random);
bool set_and_exchange(const Here &here, int step, int chief);
bool set_and_erase_rows(const Here &here, int step, int chief);

} // namespace dtrain::simulator
