// Names of members in texts.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "wire/control.h"

#include <span>
#include <string>

namespace dtrain::cluster {

[[gnu::format(printf, 1, 2)]] std::string text(const char *format, ...); // at most wire::max_text

std::string member_name(int32_t member, int32_t workers); // "rank 3", "server 0"
std::string member_name(const wire::Peer &peer);          // "rank 3 (10.0.0.4:7001 pid 991)"
// "ranks 0-3,6 and server 1"; "nobody" for none. members must be ascending.
std::string member_list(std::span<const int32_t> members, int32_t workers);

} // namespace dtrain::cluster
