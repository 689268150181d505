// Reads the files of tokens, and finds out what a worker may do.
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/access.h"

#include <algorithm>
#include <iterator>

namespace dtrain::ps {
namespace {

constexpr const char *right_names[] = {"create", "push", "pull", "checkpoint"};

std::string_view next_word(std::string_view &text) {
    constexpr std::string_view blanks = " \t\r";
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    const std::string_view word = text.substr(0, text.find_first_of(blanks));
    text.remove_prefix(word.size());
    return word;
}

// Calls f(line, its number) for each line that is neither empty nor a comment, until one returns
// false.
template <class F> bool each_line(std::string_view text, F &&f) {
    for (size_t number = 1; !text.empty(); number++) {
        const size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end), rest = line;
        text.remove_prefix(std::min(end + 1, text.size()));
        const std::string_view first = next_word(rest);
        if (!first.empty() && first[0] != '#' && !f(line, number)) return false;
    }
    return true;
}

// 0: not a list of rights.
uint8_t rights_of(std::string_view list) {
    uint8_t rights = 0;
    while (!list.empty()) {
        const std::string_view name = list.substr(0, list.find(','));
        list.remove_prefix(std::min(name.size() + 1, list.size()));
        uint8_t bit = name == "all" ? uint8_t{Right::all} : uint8_t{0};
        for (uint8_t i = 0; i < std::size(right_names); i++)
            if (name == right_names[i]) bit = uint8_t(1 << i);
        if (bit == 0) return 0;
        rights |= bit;
    }
    return rights;
}

bool fits(std::string_view pattern, std::string_view name) {
    if (!pattern.ends_with('*')) return pattern == name;
    pattern.remove_suffix(1);
    return name.starts_with(pattern);
}

struct Line {
    explicit Line(std::string_view text)
        : tables(next_word(text)), rights(rights_of(next_word(text))), token(next_word(text)),
          more(next_word(text)) {}
    std::string_view tables;
    uint8_t rights;
    std::string_view token, more;
};

Status refuse(const char *option, size_t number, const char *why) {
    return fail(DTRAIN_ERR_CONFIG, "option %s: line %zu: %s", option, number, why);
}

} // namespace

const char *right_name(uint64_t rights) {
    return (rights & Right::create) != 0       ? "create"
           : (rights & Right::push) != 0       ? "push to"
           : (rights & Right::pull) != 0       ? "pull from"
           : (rights & Right::checkpoint) != 0 ? "checkpoint"
                                               : "open";
}

Status Tokens::read(const std::string &path, Tokens &out) {
    if (path.empty()) return DTRAIN_OK;
    constexpr const char *option = "ps.token.file";
    if (Status s = read_private_file(option, path, out.lines_); s != DTRAIN_OK) return s;
    Status s = DTRAIN_OK;
    size_t count = 0;
    each_line(out.lines_.text(), [&](std::string_view line, size_t number) {
        const std::string_view token = next_word(line);
        if (token.size() < least_token || !next_word(line).empty())
            s = refuse(option, number, "a token is one word of at least 16 characters");
        else if (++count > most_tokens)
            s = refuse(option, number, "a worker has at most 8 tokens");
        return s == DTRAIN_OK;
    });
    return s;
}

std::string Tokens::proofs(const protection::Occasion &occasion) const {
    std::string out;
    each_line(lines_.text(), [&](std::string_view line, size_t) {
        const protection::TokenProof proof = protection::prove(next_word(line), occasion);
        out.append(reinterpret_cast<const char *>(proof.data()), proof.size());
        return true;
    });
    return out;
}

Status Access::read(const std::string &path, Access &out) {
    if (path.empty()) return DTRAIN_OK;
    constexpr const char *option = "ps.access";
    if (Status s = read_private_file(option, path, out.lines_); s != DTRAIN_OK) return s;
    Status s = DTRAIN_OK;
    each_line(out.lines_.text(), [&](std::string_view text, size_t number) {
        const Line line(text);
        if (line.rights == 0)
            s = refuse(option, number,
                       "after the table's name, create, push, pull and checkpoint, with commas, or "
                       "all");
        else if (line.token.size() < least_token || !line.more.empty())
            s = refuse(option, number, "at its end, a token of at least 16 characters");
        return s == DTRAIN_OK;
    });
    return s;
}

uint8_t Access::rights(const protection::Occasion &occasion, std::string_view proofs) const {
    bool restricted = false;
    uint8_t rights = 0;
    each_line(lines_.text(), [&](std::string_view text, size_t) {
        const Line line(text);
        if (!fits(line.tables, occasion.table)) return true;
        restricted = true;
        constexpr size_t bytes = sizeof(protection::TokenProof);
        for (size_t at = 0; at + bytes <= proofs.size(); at += bytes)
            if (protection::is_proof(reinterpret_cast<const uint8_t *>(proofs.data()) + at,
                                     line.token, occasion))
                rights |= line.rights;
        return true;
    });
    return restricted ? rights : uint8_t{Right::all};
}

} // namespace dtrain::ps
