// What option protection means for a device.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/hello.h"

namespace dtrain::rdm {

// All connections of this process are protected, whatever their peers demand.
bool protects_all(const tp::Host &host);

// Equal at both ends (as the paths of hello.h) where option protection=auto demands nothing: cards
// carry the bytes, at more than a processor could check; or both processes are on one machine.
tp::Path path_of(const tp::Host &host, bool by_processors, uint64_t machine);

} // namespace dtrain::rdm
