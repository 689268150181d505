// Configuration: key/value pairs that are checked against one table (option_table.cpp).
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
    duration,      // with unit ns, us, ms, s or min, or 0; kept in ns; min..max
    auto_duration, // a duration, or "auto" (-1)
    boolean        // yes|no (also true|false, 1|0, on|off)
};

struct OptionSpec {
    const char *key;
    const char *fallback; // the default
    OptionKind kind;
    int64_t min, max;
    const char *allowed; // choice only
    const char *text;    // one line: what the option does
    bool secret = false; // never shown nor logged
};

// Every option of the library, sorted by key.
std::span<const OptionSpec> option_table();

// "DTRAIN_OP_TIMEOUT" for "op.timeout".
std::string environment_name(std::string_view key);

// One value for each option. Keys "plugin.<name>.<key>" hold free text for external plugins.
class Options {
  public:
    // Precedence: default < file named by DTRAIN_OPTIONS < environment variable DTRAIN_<KEY>.
    static Status from_environment(Options &out);

    // error names the option; unchanged on failure
    Status set(std::string_view key, std::string_view value);
    Status load(const char *path); // sets all lines of the file, or none
    // Returns the text that was set, or the default. NOT_FOUND for an unknown key; the error names
    // the nearest key.
    Status get(std::string_view key, std::string &value) const;

    // For the library's own keys, which exist and whose values were checked when they were set.
    std::string_view text(std::string_view key) const; // valid until the next set() or load()
    int64_t number(std::string_view key) const; // integer, size (bytes), duration (ns), boolean

  private:
    std::map<std::string, std::string, std::less<>> values_; // only values that were set
};

// Parses one value according to its spec; a boolean gives 0 or 1. `value` may be any text.
Status parse_option(const OptionSpec &spec, std::string_view value, int64_t &number);

} // namespace dtrain
