// Numbers the groups of ranks at each level.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/call/topology.h"

#include <algorithm>
#include <map>

namespace dtrain::collectives {

Topology::Topology(std::span<const std::vector<std::string>> paths) {
    const size_t depth = paths.empty() ? 0 : paths[0].size();
    for (size_t level = 0; level < depth; level++) {
        // Group names count only within their surroundings: two racks may each have a host "a".
        std::map<std::vector<std::string>, int32_t> numbers;
        std::vector<int32_t> groups, sizes;
        for (const std::vector<std::string> &path : paths) {
            std::vector<std::string> name(path.begin() + int64_t(level), path.end());
            int32_t number = numbers.try_emplace(name, int32_t(numbers.size())).first->second;
            if (size_t(number) == sizes.size()) sizes.push_back(0);
            sizes[size_t(number)]++;
            groups.push_back(number);
        }
        bool says_nothing = sizes.size() == 1 || sizes.size() == paths.size() ||
                            (!groups_.empty() && groups == groups_.back());
        if (says_nothing) continue;
        groups_.push_back(std::move(groups));
        auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
        shapes_.push_back({int32_t(sizes.size()), *most, *least});
    }
}

Topology Topology::of(std::span<const std::string> hosts, std::span<const std::string> locations) {
    std::vector<std::vector<std::string>> paths;
    size_t depth = 0;
    for (size_t i = 0; i < hosts.size(); i++) {
        std::vector<std::string> outermost_first;
        for (size_t at = 0; at < locations[i].size();) {
            size_t end = std::min(locations[i].find('/', at), locations[i].size());
            if (end > at) outermost_first.push_back(locations[i].substr(at, end - at));
            at = end + 1;
        }
        depth = std::max(depth, outermost_first.size());
        paths.push_back(std::move(outermost_first));
    }
    for (size_t i = 0; i < paths.size(); i++) {
        paths[i].resize(depth);
        paths[i].push_back(hosts[i]);
        std::reverse(paths[i].begin(), paths[i].end());
    }
    return Topology(paths);
}

} // namespace dtrain::collectives
