// Reads rank 0's decisions, which may come from another version of the library.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/setup.h"

#include "base/nearest.h"
#include "collectives/cost/choose.h"

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::collectives {

Status check_rules(const Setup &setup) {
    if (setup.choice_rules == choice_rules) return DTRAIN_OK;
    return fail(DTRAIN_ERR_VERSION,
                "rank 0's library chooses algorithms by rules %u, this rank's by rules %u; use the "
                "same version on all ranks",
                setup.choice_rules, choice_rules);
}

Status find_forced(const Setup &setup, std::optional<Algorithm> &out) {
    out.reset();
    const std::string_view name(setup.algorithm, strnlen(setup.algorithm, max_algorithm_name));
    if (name.empty()) return DTRAIN_OK;
    Algorithm found;
    if (parse_algorithm(name, found)) {
        out = found;
        return DTRAIN_OK;
    }
    std::vector<std::string_view> names;
    std::string list;
    for (Algorithm algorithm : all_algorithms()) {
        names.emplace_back(algorithm_name(algorithm));
        list.append(list.empty() ? "" : ", ").append(names.back());
    }
    const std::string_view close = nearest(name, names);
    return fail(DTRAIN_ERR_VERSION,
                "rank 0 chose the algorithm \"%.*s\" (option allreduce.algorithm), which this "
                "rank's library does not "
                "have; it has %s; the nearest is \"%.*s\"; use the same version on all ranks, or "
                "one of these",
                int(name.size()), name.data(), list.c_str(), int(close.size()), close.data());
}

} // namespace dtrain::collectives
