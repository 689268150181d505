// Compares the names of environment variables with those that dtrain reads.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/environment/stray_variables.h"

#include "base/nearest.h"
#include "base/options.h"
#include "cluster/host/names.h"

#include <algorithm>
#include <string_view>

namespace dtrain::cluster {
namespace {

constexpr std::string_view ours = "DTRAIN_";
constexpr std::string_view free_prefixes[] = {"DTRAIN_TEST_", "DTRAIN_PLUGIN_"};
// Variables of dtrain that are not options.
constexpr std::string_view others[] = {
    "DTRAIN_OPTIONS",    "DTRAIN_RANK",         "DTRAIN_SIZE",       "DTRAIN_ROLE",
    "DTRAIN_SERVERS",    "DTRAIN_SERVER_INDEX", "DTRAIN_RENDEZVOUS", "DTRAIN_LISTEN_FD",
    "DTRAIN_LOCAL_RANK", "DTRAIN_LOCAL_SIZE"};

} // namespace

std::vector<std::string> stray_variables(const char *const *environment) {
    std::vector<std::string> names, lines;
    for (const OptionSpec &spec : option_table()) names.push_back(environment_name(spec.key));
    std::vector<std::string_view> known(names.begin(), names.end());
    known.insert(known.end(), std::begin(others), std::end(others));
    for (; environment != nullptr && *environment != nullptr; environment++) {
        std::string_view name = *environment;
        name = name.substr(0, name.find('='));
        if (!name.starts_with(ours) || std::ranges::find(known, name) != known.end() ||
            std::ranges::any_of(free_prefixes, [&](auto one) { return name.starts_with(one); }))
            continue;
        lines.push_back(text("environment variable %.*s is not one of dtrain's and is ignored; the "
                             "nearest one is %s",
                             int(std::min<size_t>(name.size(), 64)), name.data(),
                             std::string(nearest(name, known)).c_str()));
    }
    return lines;
}

} // namespace dtrain::cluster
