// All-reduce level by level: inside each host, then between hosts, and back.
// SPDX-License-Identifier: Apache-2.0
//
// The members of a group share the work: each of its leaders sums one shard of all members'
// vectors, then sums it with the leaders of the same shard in the other groups (which may be groups
// of groups), and finally distributes it in its own group. So each byte crosses the slow links as
// rarely as possible. All groups have as many leaders as the smallest group has members; the tree
// has one leader, for short vectors.
//
// Source: Jia et al.: Highly scalable deep learning training system with mixed-precision, 2018
// (hierarchical all-reduce), with every member leading a shard.
#include "collectives/algorithms/hierarchical_parts.h"
#include "collectives/call/layout.h"
#include "collectives/schedule/level.h"

namespace dtrain::collectives::hierarchical_parts {
namespace {

struct How {
    Between between;
    bool one_leader;
};

void add_up(Plan &plan, const Team &team, uint32_t level, const How &how, Extent own, Extent sum) {
    if (!find_level(plan, team, level)) return how.between(plan, team, own, sum);

    const Level groups(plan, team, level);
    const size_t shards = how.one_leader ? 1 : groups.smallest();
    const uint64_t element = plan.spec.element_bytes, count = own.bytes / element;
    auto shard = [&](Extent all, size_t index) {
        uint64_t begin = part_begin(count, shards, index),
                 end = part_begin(count, shards, index + 1);
        return all.part(begin * element, (end - begin) * element);
    };
    const std::vector<int32_t> &mine = groups.own();
    auto leads = [&](size_t index) { return mine[index] == plan.rank; };
    const uint64_t most = (count / shards + 1) * element;

    plan.limit_messages(2, most);
    for (size_t s = 0; s < shards; s++)
        if (!leads(s)) plan.send(mine[s], shard(own, s));
    for (size_t s = 0; s < shards; s++) {
        if (!leads(s)) continue;
        Extent so_far = shard(own, s);
        for (int32_t rank : mine) {
            if (rank == plan.rank) continue;
            plan.recv_reduce(rank, so_far, shard(sum, s));
            so_far = shard(sum, s);
        }
        add_up(plan, Team(plan, groups.leaders(s)), level + 1, how, so_far, shard(sum, s));
    }
    plan.limit_messages(2, most);
    for (size_t s = 0; s < shards; s++) {
        if (leads(s))
            for (int32_t rank : mine) {
                if (rank != plan.rank) plan.send(rank, shard(sum, s));
            }
        else
            plan.recv(mine[s], shard(sum, s));
    }
}

} // namespace

void allreduce(Plan &plan, Between between, bool one_leader) {
    uint64_t bytes = input_bytes(plan.spec);
    add_up(plan, Team::everyone(plan), 0, {between, one_leader}, plan.in(0, bytes),
           plan.out(0, bytes));
}

} // namespace dtrain::collectives::hierarchical_parts
