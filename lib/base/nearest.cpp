// Compares names by their edit distance.
// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace dtrain {
namespace {

// Levenshtein distance, one row at a time.
size_t distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 0; i < a.size(); i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < b.size(); j++) {
            size_t replaced = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

} // namespace

std::string_view nearest(std::string_view wanted, std::span<const std::string_view> candidates) {
    std::string_view best;
    size_t least = SIZE_MAX;
    wanted = wanted.substr(0, 64); // bounds the work on garbage input
    for (std::string_view candidate : candidates)
        if (size_t d = distance(wanted, candidate); d < least) {
            least = d;
            best = candidate;
        }
    return best;
}

} // namespace dtrain
