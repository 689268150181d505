// How many cores this process may use.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::cluster {

// The cores of the affinity mask, bounded by the quotas of the control groups; in thousandths of a
// core, at least 1.
uint32_t usable_millicores();
uint32_t usable_cores(); // rounded up

// A hash of the affinity mask: processes with the same one share their cores; 0: unknown.
uint64_t usable_cpus();

} // namespace dtrain::cluster
