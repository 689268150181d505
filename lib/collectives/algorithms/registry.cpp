// The table of algorithms, and lookups in it.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/algorithm.h"

#include <algorithm>
#include <bit>

namespace dtrain::collectives {
namespace {

struct Entry {
    const char *name;
    const Description &description;
};

#define DTRAIN_ENTRY(name) {#name, algorithms::name},
constexpr Entry entries[] = {DTRAIN_EACH_ALGORITHM(DTRAIN_ENTRY)};
#undef DTRAIN_ENTRY

#define DTRAIN_VALUE(name) Algorithm::name,
constexpr Algorithm values[] = {DTRAIN_EACH_ALGORITHM(DTRAIN_VALUE)};
#undef DTRAIN_VALUE

} // namespace

std::span<const Algorithm> all_algorithms() { return values; }

const Description &description(Algorithm algorithm) {
    return entries[size_t(algorithm)].description;
}

const char *algorithm_name(Algorithm algorithm) { return entries[size_t(algorithm)].name; }

bool parse_algorithm(std::string_view name, Algorithm &out) {
    auto found =
        std::ranges::find_if(values, [&](Algorithm one) { return name == algorithm_name(one); });
    if (found == std::end(values)) return false;
    out = *found;
    return true;
}

const Method *find_method(Kind kind, Algorithm algorithm, int32_t size, bool uniform) {
    std::span<const Method> methods = description(algorithm).methods;
    auto method = std::ranges::find(methods, kind, &Method::kind);
    if (method == methods.end()) return nullptr;
    bool fits = size <= method->max_size && (uniform || method->any_counts) &&
                (!method->powers_of_two || std::has_single_bit(uint32_t(size)));
    return fits ? &*method : nullptr;
}

} // namespace dtrain::collectives
