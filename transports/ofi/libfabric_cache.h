// Libfabric's own cache of registrations, which is not used.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"

namespace dtrain::ofi {

// Call before a domain is opened. Libfabric would keep registrations of memory that was freed and
// mapped again, unless it was freed by functions of the C library, whose code it rewrites to learn
// of it. It caches only if something watches the memory, so it is given a watcher that refuses to.
void refuse_libfabric_cache(const tp::Host &host);

} // namespace dtrain::ofi
