// The table of methods. The build lists the constants DTRAIN_COMPRESS_* of dtrain.h in
// dtrain_names.h (cmake/names.cmake); each needs a descriptor, or the library does not link.
// SPDX-License-Identifier: Apache-2.0
#include "compression/method.h"

#include "compression/method_info.h"
#include "dtrain_names.h"

namespace dtrain::compression {

#define DTRAIN_DECLARE(NAME, name) extern const MethodInfo name##_method;
DTRAIN_EACH_COMPRESS(DTRAIN_DECLARE)

const MethodInfo *find_method(uint32_t kind) {
    switch (kind) {
#define DTRAIN_CASE(NAME, name)                                                                    \
    case DTRAIN_COMPRESS_##NAME: return &name##_method;
        DTRAIN_EACH_COMPRESS(DTRAIN_CASE)
    default: return nullptr;
    }
}

std::unique_ptr<Method> make_method(const Params &params, Group group) {
    return find_method(params.kind)->make(params, group);
}

} // namespace dtrain::compression
