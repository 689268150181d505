// Parses and checks options from files, the environment and calls.
// SPDX-License-Identifier: Apache-2.0
#include "base/options.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/nearest.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sys/auxv.h>
#include <vector>

namespace dtrain {
namespace {

constexpr std::string_view foreign_prefix = "plugin.";
constexpr size_t max_value = 4096, max_file = 1 << 20;

struct Unit {
    std::string_view name;
    int64_t factor;
};
constexpr Unit size_units[] = {{"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}};
constexpr Unit duration_units[] = {
    {"ns", 1}, {"us", us}, {"ms", ms}, {"s", second}, {"min", 60 * second}};

const OptionSpec *find(std::string_view key) {
    auto table = option_table();
    auto at = std::lower_bound(table.begin(), table.end(), key,
                               [](const OptionSpec &s, std::string_view k) { return s.key < k; });
    return at != table.end() && at->key == key ? &*at : nullptr;
}

// "plugin.path" is an option of the library; "plugin.<name>.<key>" belongs to a plugin.
bool is_foreign(std::string_view key) {
    return key.starts_with(foreign_prefix) &&
           key.find('.', foreign_prefix.size()) != std::string_view::npos;
}

Status unknown(std::string_view key) {
    std::vector<std::string_view> keys;
    for (const OptionSpec &spec : option_table()) keys.push_back(spec.key);
    std::string_view close = nearest(key, keys);
    return fail(DTRAIN_ERR_NOT_FOUND, "unknown option \"%.*s\"; the nearest name is \"%.*s\"",
                int(std::min<size_t>(key.size(), 64)), key.data(), int(close.size()), close.data());
}

Status bad(const OptionSpec &spec, std::string_view value, const char *expected) {
    return fail(DTRAIN_ERR_INVALID, "option %s: \"%.*s\" is not %s", spec.key,
                int(std::min<size_t>(value.size(), 64)), value.data(), expected);
}

Status parse_choice(const OptionSpec &spec, std::string_view value, int64_t &number) {
    std::string_view rest = spec.allowed;
    std::vector<std::string_view> choices;
    for (number = 0; !rest.empty(); number++) {
        std::string_view one = rest.substr(0, rest.find('|'));
        if (one == value) return DTRAIN_OK;
        choices.push_back(one);
        rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    }
    std::string expected = std::string("one of ") + spec.allowed + "; the nearest is \"";
    expected.append(nearest(value, choices)).append("\"");
    return bad(spec, value, expected.c_str());
}

Status parse_boolean(const OptionSpec &spec, std::string_view value, int64_t &number) {
    for (std::string_view yes : {"yes", "true", "1", "on"})
        if (value == yes) return number = 1, DTRAIN_OK;
    for (std::string_view no : {"no", "false", "0", "off"})
        if (value == no) return number = 0, DTRAIN_OK;
    return bad(spec, value, "yes or no");
}

Status parse_scaled(const OptionSpec &spec, std::string_view value, std::span<const Unit> units,
                    const char *expected, int64_t &number) {
    int64_t count = 0;
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
    if (error != std::errc{}) return bad(spec, value, expected);
    std::string_view suffix(end, size_t(value.data() + value.size() - end));
    for (const Unit &unit : units)
        if (suffix == unit.name) {
            if (__builtin_mul_overflow(count, unit.factor, &number) || number < spec.min ||
                number > spec.max)
                return fail(DTRAIN_ERR_INVALID,
                            "option %s: \"%.*s\" is out of range; allowed are %lld to %lld%s",
                            spec.key, int(std::min<size_t>(value.size(), 64)), value.data(),
                            static_cast<long long>(spec.min), static_cast<long long>(spec.max),
                            spec.kind == OptionKind::duration ? " ns" : "");
            return DTRAIN_OK;
        }
    return bad(spec, value, expected);
}

std::string_view trim(std::string_view s) {
    while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
    while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.remove_suffix(1);
    return s;
}

Status read_file(const char *path, std::string &content) {
    const Stream file = read_stream(path);
    if (file == nullptr) return fail_errno(errno, "options file \"%s\"", path);
    char piece[4096];
    for (size_t got = 1; got > 0 && content.size() <= max_file;) {
        got = std::fread(piece, 1, sizeof piece, file.get());
        content.append(piece, got);
    }
    if (std::ferror(file.get()) != 0) return fail_errno(errno, "options file \"%s\"", path);
    if (content.size() > max_file)
        return fail(DTRAIN_ERR_LIMIT, "options file \"%s\" is longer than 1 MiB", path);
    return DTRAIN_OK;
}

} // namespace

std::string environment_name(std::string_view key) {
    std::string name = "DTRAIN_";
    for (char c : key) name += c == '.' ? '_' : char(std::toupper(static_cast<unsigned char>(c)));
    return name;
}

Status parse_option(const OptionSpec &spec, std::string_view value, int64_t &number) {
    number = 0;
    switch (spec.kind) {
    case OptionKind::text: return DTRAIN_OK;
    case OptionKind::choice: return parse_choice(spec, value, number);
    case OptionKind::boolean: return parse_boolean(spec, value, number);
    case OptionKind::integer:
        return parse_scaled(spec, value, std::span(size_units, 1), "a whole number", number);
    case OptionKind::auto_size:
        if (value == "auto") return number = -1, DTRAIN_OK;
        [[fallthrough]];
    case OptionKind::size:
        return parse_scaled(spec, value, size_units, "a size in bytes such as 256K", number);
    case OptionKind::auto_duration:
        if (value == "auto") return number = -1, DTRAIN_OK;
        [[fallthrough]];
    case OptionKind::duration:
        if (value == "0") value = "0ns"; // the only number that needs no unit
        return parse_scaled(spec, value, duration_units, "a duration such as 500ms", number);
    }
    return fail(DTRAIN_ERR_INTERNAL, "option %s has no kind", spec.key);
}

Status Options::from_environment(Options &out) {
    Options fresh;
    // A privileged (set-user-ID) program must not be configured by the user who starts it.
    if (getauxval(AT_SECURE) == 0) {
        if (const char *path = std::getenv("DTRAIN_OPTIONS"); path != nullptr && *path != 0)
            if (Status s = fresh.load(path); s != DTRAIN_OK)
                return fail_within(s, "DTRAIN_OPTIONS");
        for (const OptionSpec &spec : option_table()) {
            std::string name = environment_name(spec.key);
            const char *value = std::getenv(name.c_str());
            if (value == nullptr) continue;
            if (Status s = fresh.set(spec.key, value); s != DTRAIN_OK)
                return fail_within(s, "environment variable %s", name.c_str());
        }
    }
    out = std::move(fresh);
    return DTRAIN_OK;
}

Status Options::set(std::string_view key, std::string_view value) {
    if (value.size() > max_value)
        return fail(DTRAIN_ERR_LIMIT, "the value of option \"%.*s\" is longer than %zu bytes",
                    int(std::min<size_t>(key.size(), 64)), key.data(), max_value);
    if (!is_foreign(key)) {
        const OptionSpec *spec = find(key);
        if (spec == nullptr) return unknown(key);
        int64_t number = 0;
        if (Status s = parse_option(*spec, value, number); s != DTRAIN_OK) return s;
    }
    values_.insert_or_assign(std::string(key), std::string(value));
    return DTRAIN_OK;
}

Status Options::load(const char *path) {
    std::string content;
    if (Status s = read_file(path, content); s != DTRAIN_OK) return s;
    Options fresh = *this;
    std::string_view rest = content;
    for (int line = 1; !rest.empty(); line++) {
        std::string_view text = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), text.size() + 1));
        text = trim(text.substr(0, text.find('#')));
        if (text.empty()) continue;
        size_t equals = text.find('=');
        if (equals == std::string_view::npos)
            return fail(DTRAIN_ERR_INVALID, "%s:%d: the line is not \"key = value\"", path, line);
        Status s = fresh.set(trim(text.substr(0, equals)), trim(text.substr(equals + 1)));
        if (s != DTRAIN_OK) return fail_within(s, "%s:%d", path, line);
    }
    *this = std::move(fresh);
    return DTRAIN_OK;
}

Status Options::get(std::string_view key, std::string &value) const {
    if (auto at = values_.find(key); at != values_.end()) {
        value = at->second;
        return DTRAIN_OK;
    }
    const OptionSpec *spec = find(key);
    if (spec == nullptr) return unknown(key);
    value = spec->fallback;
    return DTRAIN_OK;
}

std::string_view Options::text(std::string_view key) const {
    if (auto at = values_.find(key); at != values_.end()) return at->second;
    return find(key)->fallback;
}

int64_t Options::number(std::string_view key) const {
    int64_t number = 0;
    parse_option(*find(key), text(key), number);
    return number;
}

} // namespace dtrain
