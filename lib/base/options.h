// Configuration: key/value pairs, checked against one table (option_table.cpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace dtrain {

enum class OptionKind {
    text,          // anything
    choice,        // one of `allowed`, separated by '|'
    integer,       // min..max
    size,          // bytes, with K, M, G; min..max
    auto_size,     // a size, or "auto" (-1)
    duration,      // with ns, us, ms, s, min, or 0; kept in ns; min..max
    auto_duration, // a duration, or "auto" (-1)
    boolean        // yes|no (also true|false, 1|0, on|off)
};

struct OptionSpec {
    const char *key;
    const char *fallback; // the default
    OptionKind kind;
    int64_t min, max;
    const char *allowed; // choice only
    const char *text;    // what it does, one line
    bool secret = false; // never shown nor logged
};

// Every option of the library, sorted by key.
std::span<const OptionSpec> option_table();

// "DTRAIN_OP_TIMEOUT" for "op.timeout".
std::string environment_name(std::string_view key);

// A value of each option. Keys "plugin.<name>.<key>" are free text for plugins from outside.
class Options {
  public:
    // default < file named by DTRAIN_OPTIONS < environment DTRAIN_<KEY>.
    static Status from_environment(Options &out);

    Status set(std::string_view key, std::string_view value); // named error; unchanged on failure
    Status load(const char *path);                            // all lines or none
    // The text set, or the default; NOT_FOUND (naming the nearest key) for an unknown key.
    Status get(std::string_view key, std::string &value) const;

    // For the library's own keys, which exist and were checked when they were set.
    std::string_view text(std::string_view key) const; // valid until the next set() or load()
    int64_t number(std::string_view key) const; // integer, size (bytes), duration (ns), boolean

  private:
    std::map<std::string, std::string, std::less<>> values_; // only what differs from the default
};

// Parses one value by its spec; for boolean 0 or 1. `value` may be any text.
Status parse_option(const OptionSpec &spec, std::string_view value, int64_t &number);

} // namespace dtrain
