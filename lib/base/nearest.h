// Finds the closest of some names, for "did you mean ...".
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string_view>

namespace dtrain {

// Returns the candidate with the smallest edit distance to `wanted` (the first among equals), or ""
// when there are no candidates.
std::string_view nearest(std::string_view wanted, std::span<const std::string_view> candidates);

} // namespace dtrain
