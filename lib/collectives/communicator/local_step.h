// Work on buffers that the agent does itself, between its looks at other operations.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::collectives {

constexpr uint64_t elements_per_step = 256 << 10;

} // namespace dtrain::collectives
