// Formats the names of members and lists of them.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/host/names.h"

#include <cstdarg>
#include <cstdio>

namespace dtrain::cluster {
namespace {

// "0-3,6", with offset taken off each number.
std::string ranges(std::span<const int32_t> numbers, int32_t offset) {
    std::string out;
    for (size_t i = 0; i < numbers.size();) {
        size_t end = i + 1;
        while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) end++;
        if (out.size() > 150) return out + ",...";
        if (!out.empty()) out += ',';
        out += std::to_string(numbers[i] - offset);
        if (end - i > 1) out += '-' + std::to_string(numbers[end - 1] - offset);
        i = end;
    }
    return out;
}

} // namespace

std::string text(const char *format, ...) {
    char buffer[wire::max_text + 1];
    va_list args;
    va_start(args, format);
    std::vsnprintf(buffer, sizeof buffer, format, args);
    va_end(args);
    return buffer;
}

std::string member_name(int32_t member, int32_t workers) {
    return member < workers ? text("rank %d", member) : text("server %d", member - workers);
}

std::string member_name(const wire::Peer &peer) {
    return text("%s %d (%s)", peer.role == 0 ? "rank" : "server", peer.index, peer.label.c_str());
}

std::string member_list(std::span<const int32_t> members, int32_t workers) {
    size_t split = 0;
    while (split < members.size() && members[split] < workers) split++;
    auto part = [](const char *one, std::span<const int32_t> list, int32_t offset) {
        return std::string(one) + (list.size() > 1 ? "s " : " ") + ranges(list, offset);
    };
    std::string out;
    if (split > 0) out = part("rank", members.first(split), 0);
    if (split > 0 && split < members.size()) out += " and ";
    if (split < members.size()) out += part("server", members.subspan(split), workers);
    return out.empty() ? "nobody" : out;
}

} // namespace dtrain::cluster
