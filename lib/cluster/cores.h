// How many cores this process may use.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::cluster {

// The affinity mask, bounded by the control group's quota; at least 1.
uint32_t usable_cores();

} // namespace dtrain::cluster
