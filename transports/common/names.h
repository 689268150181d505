// The addresses of a name.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/standard_descriptors.h"

#include <cstdlib>
#include <netdb.h>

namespace dtrain::tp {

// As getaddrinfo(), which in glibc 2.36 crashes when there is no memory for what it keeps of
// nsswitch.conf: numbers need none of it, and for names memory is asked for first.
inline int find_addresses(const char *name, const char *service, const addrinfo &hints,
                          addrinfo **found) {
    constexpr size_t plenty = 64 << 10;
    addrinfo numeric = hints;
    numeric.ai_flags |= AI_NUMERICHOST;
    if (const int error = getaddrinfo(name, service, &numeric, found); error != EAI_NONAME)
        return error;
    void *volatile memory = std::malloc(plenty); // volatile: else it need not really be asked
    if (memory == nullptr) return EAI_MEMORY;
    std::free(memory);
    const StandardDescriptors occupied;
    return getaddrinfo(name, service, &hints, found);
}

} // namespace dtrain::tp
