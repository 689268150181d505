// Random bytes for keys, nonces and identities.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

namespace dtrain {

void random_bytes(void *out, size_t length); // from the system's generator

} // namespace dtrain
