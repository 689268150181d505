// What the tests of the libfabric transport have in common.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rig.h"

namespace dtrain::test {

inline const std::map<std::string, const char *> ofi_left_out = {
    {"descriptors_close_on_exec", "libfabric opens descriptors that do not close on exec"},
};

} // namespace dtrain::test

// What providers of libfabric 1.17 keep of endpoints and connections that were closed.
extern "C" const char *__lsan_default_suppressions();
extern "C" [[gnu::used, gnu::visibility("default")]] inline const char *
__lsan_default_suppressions() {
    return "leak:libfabric.so";
}
