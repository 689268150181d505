// Messages between all ranks.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "more_calls.h"

namespace dtrain::simulator {

// Each returns whether all went well. All ranks call it.
bool exchange_mail(const Here &here, size_t count);
bool receive_too_early(const Here &here, size_t count); // and then again
bool mix_calls(const Here &here, size_t count);         // messages and collectives in flight

} // namespace dtrain::simulator
