// The collectives and messages that every program makes. All ranks make each of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "more_calls.h"

namespace dtrain::simulator {

// Each returns whether all went well.
bool sum(const Here &here, size_t count);
bool sum_several(const Here &here, size_t count); // in flight at once
bool broadcast(const Here &here, size_t count, int root);
bool gather_all(const Here &here, size_t count);
bool exchange_all(const Here &here, size_t count);
bool move_blocks(const Here &here, size_t count, int root);
bool pass_on(const Here &here, size_t count); // messages along a ring
bool sum_gradients(const Here &here, size_t count);
bool sum_in_halves(const Here &here, size_t count); // of a split communicator

} // namespace dtrain::simulator
