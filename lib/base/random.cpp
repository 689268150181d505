// Reads the system's generator.
// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <cstdint>
#include <sys/random.h>

namespace dtrain {

void random_bytes(void *out, size_t length) {
    auto *at = static_cast<uint8_t *>(out);
    while (length > 0) { // only a signal makes a read short
        const ssize_t got = getrandom(at, length, 0);
        if (got < 0) continue;
        at += got;
        length -= size_t(got);
    }
}

} // namespace dtrain
