// The services of the core, with texts that are formatted.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain_basics.h"
#include "dtrain_device.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <type_traits>

namespace dtrain::cuda {

using Status = dtrain_status_t;
using Host = dtrain_dv_host_t;

__attribute__((format(printf, 3, 4))) inline Status fail(const Host &host, Status status,
                                                         const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return host.fail(host.self, status, text);
}

// Reads and writes structs of an older or newer core, whose struct_size differs.
template <class Struct> Struct taken(const Struct &given) {
    Struct full{};
    std::memcpy(&full, &given, std::min<size_t>(given.struct_size, sizeof full));
    return full;
}
template <class Struct> void give(Struct full, Struct &asked) {
    full.struct_size = asked.struct_size;
    std::memcpy(&asked, &full, std::min<size_t>(asked.struct_size, sizeof full));
}

} // namespace dtrain::cuda
