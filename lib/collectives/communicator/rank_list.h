// Lists of ranks, of which communicators are made.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

#include <cstdint>
#include <span>

namespace dtrain::collectives {

// INVALID unless the ranks are different ones of a communicator of this size. call: for the text.
Status check_ranks(const char *call, std::span<const int32_t> ranks, int32_t size);

} // namespace dtrain::collectives
