// How much memory this process may lock, which memory that a card reaches has to be.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"

namespace dtrain::ofi {

inline constexpr char raise_lock_limit[] =
    "raise the limit on locked memory: ulimit -l unlimited, in services LimitMEMLOCK=infinity";

// Warns when little is left after what the transport itself has registered.
void check_lock_limit(const tp::Host &host, uint64_t own);

} // namespace dtrain::ofi
