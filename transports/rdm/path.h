// What a connection of a device is like for option protection=auto.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/hello.h"

namespace dtrain::rdm {

// Equal at both ends (as the paths of hello.h) where nothing is demanded by default: cards carry
// the bytes, at more than a processor could check; or both processes are on one machine.
tp::Path path_of(const tp::Host &host, bool by_processors, uint64_t machine);

} // namespace dtrain::rdm
