// Broadcast and reduce along a tree that follows the hosts: between the leaders of groups, then
// inside each group. The root leads its group; other groups are led by their first member.
// SPDX-License-Identifier: Apache-2.0
//
// Source: Karonis, de Supinski, Foster, Gropp, Lusk, Bresnahan: Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance, IPDPS 2000 (multilevel trees).
#include "collectives/algorithms/hierarchical_parts.h"
#include "collectives/schedule/level.h"

#include <algorithm>

namespace dtrain::collectives::hierarchical_parts {
namespace {

// This rank's neighbors in the tree.
struct Node {
    int32_t parent = -1;           // -1: the root
    std::vector<int32_t> children; // the farthest, with the largest subtrees, first
};

void hang(const Plan &plan, const std::vector<int32_t> &ranks, int32_t root, Shape shape,
          Node &node) {
    const auto size = int32_t(ranks.size());
    auto index = [&](int32_t rank) {
        return int32_t(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
    };
    auto rank_at = [&](int32_t position) { return ranks[size_t((position + index(root)) % size)]; };
    int32_t parent = -1;
    std::vector<int32_t> children;
    shape(size, (index(plan.rank) - index(root) + size) % size, parent, children);
    if (parent >= 0) node.parent = rank_at(parent);
    for (int32_t child : children) node.children.push_back(rank_at(child));
}

void find_node(const Plan &plan, const Team &team, uint32_t level, int32_t root, Shape shape,
               Node &node) {
    if (!find_level(plan, team, level)) return hang(plan, team.ranks(), root, shape, node);
    const Level groups(plan, team, level);
    std::vector<int32_t> leaders;
    int32_t own_leader = -1;
    for (const std::vector<int32_t> &group : groups.groups()) {
        bool has_root = std::find(group.begin(), group.end(), root) != group.end();
        leaders.push_back(has_root ? root : group[0]);
        if (&group == &groups.own()) own_leader = leaders.back();
    }
    if (plan.rank == own_leader)
        find_node(plan, Team(plan, std::move(leaders)), level + 1, root, shape, node);
    hang(plan, groups.own(), own_leader, shape, node);
}

Node node_of(const Plan &plan, Shape shape) {
    Node node;
    find_node(plan, Team::everyone(plan), 0, plan.spec.root, shape, node);
    return node;
}

} // namespace

void chain(int32_t size, int32_t at, int32_t &parent, std::vector<int32_t> &children) {
    if (at > 0) parent = at - 1;
    if (at + 1 < size) children.push_back(at + 1);
}

void binomial(int32_t size, int32_t at, int32_t &parent, std::vector<int32_t> &children) {
    if (at > 0) parent = at & (at - 1);
    for (int32_t distance = 1; at + distance < size && (at & distance) == 0; distance *= 2)
        children.insert(children.begin(), at + distance);
}

void broadcast(Plan &plan, Shape shape) {
    const uint64_t all = output_bytes(plan.spec);
    const Node node = node_of(plan, shape);
    plan.limit_messages(1, all);
    plan.each_chunk(all, [&](uint64_t begin, uint64_t bytes) {
        Extent chunk = plan.out(begin, bytes);
        if (node.parent >= 0) plan.recv(node.parent, chunk);
        for (int32_t child : node.children) plan.send(child, chunk);
    });
}

void reduce(Plan &plan, Shape shape) {
    const uint64_t all = input_bytes(plan.spec);
    Node node = node_of(plan, shape);
    std::reverse(node.children.begin(), node.children.end()); // the nearest finish first
    plan.limit_messages(1, all);
    const bool is_root = node.parent < 0;
    const Extent sums = is_root ? plan.out(0, all) : plan.scratch(node.children.empty() ? 0 : all);
    plan.each_chunk(all, [&](uint64_t begin, uint64_t bytes) {
        Extent sum = plan.in(begin, bytes);
        for (int32_t child : node.children) {
            plan.recv_reduce(child, sum, sums.part(begin, bytes));
            sum = sums.part(begin, bytes);
        }
        if (is_root)
            plan.finish(sum);
        else
            plan.send(node.parent, sum);
    });
}

} // namespace dtrain::collectives::hierarchical_parts
