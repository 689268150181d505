// "Did you mean ...": the closest of some names.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string_view>

namespace dtrain {

// The candidate with the smallest edit distance to `wanted` (the first of equals); "" when there is
// no candidate.
std::string_view nearest(std::string_view wanted, std::span<const std::string_view> candidates);

} // namespace dtrain
