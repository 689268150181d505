// What the programs share that measure libfabric through the objects of the transport ofi.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"

#include <cstdio>
#include <cstdlib>

namespace bench {

inline void must(bool good, const char *what) {
    if (good) return;
    std::fprintf(stderr, "%s is impossible here\n", what);
    std::exit(EXIT_FAILURE);
}

// As much of the core as it takes to open an endpoint.
inline dtrain_tp_host_t services() {
    dtrain_tp_host_t host{};
    host.struct_size = sizeof host;
    host.log = [](void *, int32_t, const char *line) { std::fprintf(stderr, "%s\n", line); };
    host.fail = [](void *, dtrain_status_t status, const char *text) {
        std::fprintf(stderr, "%s\n", text);
        return status;
    };
    host.random = [](void *, void *buf, size_t len) { arc4random_buf(buf, len); };
    return host;
}

} // namespace bench
