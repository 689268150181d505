// Reads environment variables and checks their values.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/host/variables.h"

#include <charconv>

namespace dtrain::cluster {

std::string Variables::text(const char *name) const {
    const char *value = getenv_(name);
    return value == nullptr ? "" : value;
}

bool Variables::has_any(std::initializer_list<const char *> names) const {
    for (const char *name : names)
        if (has(name)) return true;
    return false;
}

Status Variables::number(const char *name, int32_t least, int32_t limit, int32_t &out) const {
    std::string value = text(name);
    if (value.empty()) return fail(DTRAIN_ERR_CONFIG, "%s is not set", name);
    int32_t n = 0;
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
    if (error != std::errc{} || *end != 0 || n < least || n > limit)
        return fail(DTRAIN_ERR_CONFIG, "%s=%.40s is not a number from %d to %d", name,
                    value.c_str(), least, limit);
    out = n;
    return DTRAIN_OK;
}

} // namespace dtrain::cluster
