// When a process that waits for others says so in its log.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/clock.h"

#include <cstdint>

namespace dtrain::cluster {

constexpr int64_t first_line = 2 * second, line_interval = 10 * second;

} // namespace dtrain::cluster
