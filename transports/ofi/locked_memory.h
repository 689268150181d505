// Checks how much memory this process may lock: memory that a card accesses must be locked.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"

namespace dtrain::ofi {

inline constexpr char raise_lock_limit[] =
    "raise the limit on locked memory: ulimit -l unlimited, in services LimitMEMLOCK=infinity";

// Logs a warning if little is left after what the transport itself has registered.
void check_lock_limit(const tp::Host &host, uint64_t own);

} // namespace dtrain::ofi
