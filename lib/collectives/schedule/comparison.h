// Appends to a plan that ranks compare their results (option verify.results).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/call/collective.h"
#include "engine/plan.h"

#include <memory>

namespace dtrain::collectives {

// Whether all ranks have the same result, without gaps.
bool can_compare(const CollectiveSpec &spec);

// The plan, and then: each rank hashes its result and exchanges the hash with the ranks before and
// after it. So each rank is one of three that see which of them differs. All ranks must do so in
// the same call.
std::shared_ptr<const engine::Plan> with_comparison(const CollectiveSpec &spec,
                                                    const engine::Plan &plan);

} // namespace dtrain::collectives
