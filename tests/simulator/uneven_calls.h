// What ranks do on a copy of their communicator, each something else.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "more_calls.h"

namespace dtrain::simulator {

// Each returns whether all went well. All ranks call it.
bool abort_a_copy(const Here &here, int who);   // that rank breaks it for all
bool abandon_a_copy(const Here &here, int who); // with operations of which that rank has none
bool come_late(const Here &here, size_t count, int who, int64_t timeout_ns); // that rank sleeps
bool sum_in_two_threads(const Here &here, size_t count);

} // namespace dtrain::simulator
