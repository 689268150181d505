// Describes which ranks are near each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dtrain::collectives {

// Nested groups, the innermost level (hosts) first. Levels without information (each rank in a
// group of its own, or all in one) are left out; without levels all ranks are equally near.
class Topology {
  public:
    Topology() = default;
    // paths[r]: the group names of rank r from the innermost outwards; all paths have the same
    // length.
    explicit Topology(std::span<const std::vector<std::string>> paths);

    // Builds it from the members' hosts and locations ("zone/rack", the outermost first). Members
    // with shorter locations share one group at the levels that they do not name.
    static Topology of(std::span<const std::string> hosts, std::span<const std::string> locations);

    uint32_t levels() const { return uint32_t(groups_.size()); }
    // Groups are numbered from 0 in the order of their first ranks.
    int32_t group(uint32_t level, int32_t rank) const { return groups_[level][size_t(rank)]; }
    int32_t group_count(uint32_t level) const { return shapes_[level].count; }
    int32_t largest_group(uint32_t level) const { return shapes_[level].largest; }
    int32_t smallest_group(uint32_t level) const { return shapes_[level].smallest; }

  private:
    struct Shape {
        int32_t count = 0, largest = 0, smallest = 0;
    };
    std::vector<std::vector<int32_t>> groups_; // by level and rank
    std::vector<Shape> shapes_;
};

} // namespace dtrain::collectives
