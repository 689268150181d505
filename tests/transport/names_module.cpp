// Looks up a name, for test_names.cpp to unload.
// SPDX-License-Identifier: Apache-2.0
#include "common/names.h"

extern "C" [[gnu::visibility("default")]] int find_name(int64_t deadline_ns,
                                                        dtrain::tp::Resolver *resolver) {
    addrinfo *found = nullptr;
    return dtrain::tp::find_addresses("name", nullptr, {}, deadline_ns, &found, resolver);
}
