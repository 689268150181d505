// What servers do for tables besides the rules that are built in. All ranks make each call.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "more_calls.h"

namespace dtrain::simulator {

// The function that the table of apply_a_function() names, on a process that may serve.
dtrain_status_t register_function(dtrain_context_t *context);

// Each returns whether all went well. step: for the table's name.
bool apply_a_function(const Here &here, int step, uint64_t random);
bool reach_a_quorum(const Here &here, int step, int random);
bool ask_a_table(const Here &here, int step, int chief);

} // namespace dtrain::simulator
