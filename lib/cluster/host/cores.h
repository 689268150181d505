// How many cores this process may use.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::cluster {

// The affinity mask, bounded by the quotas of the control groups; in thousandths of a core, at
// least 1.
uint32_t usable_millicores();
uint32_t usable_cores(); // rounded up

// The affinity mask, hashed: processes with the same one share their cores; 0: not known.
uint64_t usable_cpus();

} // namespace dtrain::cluster
