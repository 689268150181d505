// Converts failed system calls to statuses with texts.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"

#include <cerrno>
#include <cstring>

namespace dtrain::shm {

using tp::Host;
using Status = dtrain_status_t;

inline Status status_of(int error) {
    switch (error) {
    case ENOMEM: return DTRAIN_ERR_NO_MEMORY;
    case EMFILE:
    case ENFILE: return DTRAIN_ERR_LIMIT;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE: return DTRAIN_ERR_PEER;
    default: return DTRAIN_ERR_IO;
    }
}

// what: the call that failed, and its object.
inline Status fail_errno(const Host &host, int error, const char *what) {
    return host.fail(status_of(error), "shm: %s: %s%s", what, std::strerror(error),
                     error == EMFILE ? "; raise ulimit -n" : "");
}

} // namespace dtrain::shm
