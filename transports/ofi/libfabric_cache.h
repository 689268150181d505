// Turns off libfabric's own cache of registrations.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"

namespace dtrain::ofi {

// Must be called before a domain is opened. Libfabric would keep registrations of memory that was
// freed and mapped again, unless it was freed by functions of the C library, whose code libfabric
// rewrites to notice it. Libfabric caches only if a monitor watches the memory, so it is given a
// monitor that refuses to.
void refuse_libfabric_cache(const tp::Host &host);

} // namespace dtrain::ofi
