// Reads options that are whole numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host.h"

#include <charconv>

namespace dtrain::tp {

// Leaves `value` unchanged if the option is unset; CONFIG if it is not a number of at most max.
inline dtrain_status_t read_number(const Host &host, const char *key, uint64_t max,
                                   uint64_t &value) {
    char text[32];
    if (!host.option(key, text, sizeof text)) return DTRAIN_OK;
    const char *end = text + strlen(text);
    uint64_t number = 0;
    auto [at, error] = std::from_chars(text, end, number);
    if (error != std::errc{} || at != end || number > max)
        return host.fail(DTRAIN_ERR_CONFIG,
                         "option %s: \"%s\" is not a whole number of at most %llu", key, text,
                         static_cast<unsigned long long>(max));
    value = number;
    return DTRAIN_OK;
}

// An option whose value is a member of Settings.
template <class Settings> struct NumberOption {
    const char *key;
    uint64_t Settings::*member;
    uint64_t max;
};
template <class Settings, size_t n>
dtrain_status_t read_numbers(const Host &host, const NumberOption<Settings> (&options)[n],
                             Settings &settings) {
    for (const auto &o : options)
        if (auto s = read_number(host, o.key, o.max, settings.*o.member); s != DTRAIN_OK) return s;
    return DTRAIN_OK;
}

} // namespace dtrain::tp
