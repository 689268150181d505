// Divides the members of a team into their groups at one level of the topology.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/call/topology.h"
#include "collectives/schedule/team.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace dtrain::collectives {

class Level {
  public:
    // Divides the team's members by their groups at this level.
    Level(const Plan &plan, const Team &team, uint32_t level) {
        std::map<int32_t, size_t> places;
        members_ = team.ranks().size();
        for (int32_t rank : team.ranks()) {
            int32_t group = plan.spec.topology->group(level, rank);
            auto [at, is_new] = places.try_emplace(group, groups_.size());
            if (is_new) groups_.emplace_back();
            groups_[at->second].push_back(rank);
            if (rank == plan.rank) own_ = at->second;
        }
        for (const auto &group : groups_) smallest_ = std::min(smallest_, group.size());
    }
    // False if all members are in one group, or each is in a group of its own.
    bool divides() const { return groups_.size() > 1 && groups_.size() < members_; }
    const std::vector<int32_t> &own() const { return groups_[own_]; }
    const std::vector<std::vector<int32_t>> &groups() const { return groups_; }
    size_t smallest() const { return smallest_; }
    // The leaders of a shard, one from each group.
    std::vector<int32_t> leaders(size_t shard) const {
        std::vector<int32_t> ranks;
        for (const auto &group : groups_) ranks.push_back(group[shard]);
        return ranks;
    }

  private:
    std::vector<std::vector<int32_t>> groups_;
    size_t members_ = 0, own_ = 0, smallest_ = SIZE_MAX;
};

// Finds the first level from `level` outwards that divides the team; false if there is none.
inline bool find_level(const Plan &plan, const Team &team, uint32_t &level) {
    const Topology *topology = plan.spec.topology;
    const uint32_t levels = topology == nullptr ? 0 : topology->levels();
    while (level < levels && !Level(plan, team, level).divides()) level++;
    return level < levels;
}

} // namespace dtrain::collectives
