// All-gather and reduce-scatter level by level. The members of a group share the work: each leader
// handles some of its group's blocks and exchanges them around a ring with the leaders of the same
// share in the other groups (which may be groups of groups); then the group exchanges what its
// leaders have. So each block enters and leaves a host once. All groups have as many leaders as the
// smallest group has members.
// SPDX-License-Identifier: Apache-2.0
//
// Source: as hierarchical_sums.cpp; for all-gather also Traeff: Efficient allgather for regular
// SMP-clusters, EuroPVM/MPI 2006.
#include "collectives/algorithms/hierarchical_parts.h"
#include "collectives/call/layout.h"
#include "collectives/schedule/level.h"

#include <algorithm>

namespace dtrain::collectives::hierarchical_parts {
namespace {

using Ranks = std::vector<int32_t>; // the ranks whose blocks are meant; ascending
using Sets = std::vector<Ranks>;    // by member of a team

void merge(Ranks &into, const Ranks &more) {
    Ranks all;
    std::merge(into.begin(), into.end(), more.begin(), more.end(), std::back_inserter(all));
    into = std::move(all);
}

Ranks all_of(const Sets &sets) {
    Ranks all;
    for (const Ranks &set : sets) merge(all, set);
    return all;
}

class Blocks {
  public:
    explicit Blocks(Plan &plan) : plan_(plan), layout_(plan.spec) {
        plan.limit_messages(2 * uint64_t(plan.size), layout_.end());
    }

    // Calls f(first byte, bytes) for each contiguous run of these ranks' blocks.
    template <class F> void each_run(const Ranks &ranks, F f) const {
        uint64_t begin = 0, bytes = 0;
        for (int32_t rank : ranks) {
            if (bytes > 0 && layout_.offset(rank) == begin + bytes) {
                bytes += layout_.bytes(rank);
                continue;
            }
            if (bytes > 0) f(begin, bytes);
            begin = layout_.offset(rank), bytes = layout_.bytes(rank);
        }
        if (bytes > 0) f(begin, bytes);
    }
    void send(int32_t peer, const Ranks &ranks, Extent buffer) const {
        each_run(ranks, [&](uint64_t at, uint64_t n) { plan_.send(peer, buffer.part(at, n)); });
    }
    void recv(int32_t peer, const Ranks &ranks, Extent buffer) const {
        each_run(ranks, [&](uint64_t at, uint64_t n) { plan_.recv(peer, buffer.part(at, n)); });
    }
    void recv_reduce(int32_t peer, const Ranks &ranks, Extent own, Extent sum) const {
        each_run(ranks, [&](uint64_t at, uint64_t n) {
            plan_.recv_reduce(peer, own.part(at, n), sum.part(at, n));
        });
    }
    const Layout &layout() const { return layout_; }

  private:
    Plan &plan_;
    const Layout layout_;
};

// How a level divides a team's work.
struct Division {
    Division(const Plan &plan, const Team &team, uint32_t level, const Sets &sets)
        : groups(plan, team, level), mine(groups.own()) {
        const size_t leaders = groups.smallest();
        auto set_of = [&](int32_t rank) -> const Ranks & {
            const Ranks &ranks = team.ranks();
            return sets[size_t(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin())];
        };
        shares.assign(leaders, Sets(groups.groups().size()));
        for (size_t g = 0; g < groups.groups().size(); g++)
            for (size_t i = 0; i < groups.groups()[g].size(); i++)
                merge(shares[i % leaders][g], set_of(groups.groups()[g][i]));
        place = size_t(std::find(mine.begin(), mine.end(), plan.rank) - mine.begin());
        for (int32_t rank : mine) own_sets.push_back(set_of(rank));
    }
    size_t leaders() const { return shares.size(); }
    bool leads() const { return place < leaders(); }
    // The blocks of a share that a member of this group does not already have.
    Ranks without(size_t share, size_t member) const {
        Ranks all = all_of(shares[share]), rest;
        std::set_difference(all.begin(), all.end(), own_sets[member].begin(),
                            own_sets[member].end(), std::back_inserter(rest));
        return rest;
    }

    Level groups;
    const Ranks &mine;        // the plan's rank's group
    size_t place = 0;         // position of the plan's rank in it
    std::vector<Sets> shares; // by leader: for each group, the ranks whose blocks it handles
    Sets own_sets;            // by member of the group
};

// When it returns, every member has all blocks of all sets in `all`. Each member begins with its
// own set.
void gather(Plan &plan, const Blocks &blocks, const Team &team, uint32_t level, const Sets &sets,
            Extent all) {
    const int32_t size = team.size();
    if (!find_level(plan, team, level)) {
        auto back = [&](int32_t steps) { return size_t((team.index - steps + size) % size); };
        for (int32_t round = 0; round < size - 1; round++) {
            blocks.send(team.rank((team.index + 1) % size), sets[back(round)], all);
            blocks.recv(team.rank(int32_t(back(1))), sets[back(round + 1)], all);
        }
        return;
    }
    const Division d(plan, team, level, sets);
    for (size_t i = d.leaders(); i < d.mine.size(); i++) {
        const size_t leader = i % d.leaders();
        if (i == d.place) blocks.send(d.mine[leader], d.own_sets[i], all);
        if (leader == d.place) blocks.recv(d.mine[i], d.own_sets[i], all);
    }
    if (d.leads())
        gather(plan, blocks, Team(plan, d.groups.leaders(d.place)), level + 1, d.shares[d.place],
               all);
    for (size_t step = 0; step < d.mine.size(); step++) {
        const size_t to = (d.place + step) % d.mine.size(),
                     from = (d.place + d.mine.size() - step) % d.mine.size();
        if (step > 0 && d.leads()) blocks.send(d.mine[to], d.without(d.place, to), all);
        if (step > 0 && from < d.leaders())
            blocks.recv(d.mine[from], d.without(from, d.place), all);
    }
}

// When it returns, each member has the sums of its own set in `sum`. It adds its data from `own`,
// which may be the same memory.
void scatter(Plan &plan, const Blocks &blocks, const Team &team, uint32_t level, const Sets &sets,
             Extent own, Extent sum) {
    const int32_t size = team.size();
    if (!find_level(plan, team, level)) {
        auto back = [&](int32_t steps) { return size_t((team.index - steps + 2 * size) % size); };
        for (int32_t round = 0; round < size - 1; round++) {
            blocks.send(team.rank((team.index + 1) % size), sets[back(round + 1)],
                        round == 0 ? own : sum);
            blocks.recv_reduce(team.rank(int32_t(back(1))), sets[back(round + 2)], own, sum);
        }
        return;
    }
    const Division d(plan, team, level, sets);
    for (size_t step = 1; step < d.mine.size(); step++) {
        const size_t to = (d.place + step) % d.mine.size();
        if (to < d.leaders()) blocks.send(d.mine[to], all_of(d.shares[to]), own);
    }
    if (d.leads()) {
        const Ranks share = all_of(d.shares[d.place]);
        Extent so_far = own;
        for (size_t step = 1; step < d.mine.size(); step++) {
            const size_t from = (d.place + d.mine.size() - step) % d.mine.size();
            blocks.recv_reduce(d.mine[from], share, so_far, sum);
            so_far = sum;
        }
        scatter(plan, blocks, Team(plan, d.groups.leaders(d.place)), level + 1, d.shares[d.place],
                so_far, sum);
    }
    for (size_t i = d.leaders(); i < d.mine.size(); i++) {
        const size_t leader = i % d.leaders();
        if (leader == d.place) blocks.send(d.mine[i], d.own_sets[i], sum);
        if (i == d.place) blocks.recv(d.mine[leader], d.own_sets[i], sum);
    }
}

Sets one_each(const Plan &plan) {
    Sets sets;
    for (int32_t rank = 0; rank < plan.size; rank++) sets.push_back({rank});
    return sets;
}

} // namespace

void allgather(Plan &plan) {
    const Blocks blocks(plan);
    const Extent all = plan.out(0, blocks.layout().end());
    plan.copy(plan.in(0, blocks.layout().bytes(plan.rank)),
              all.part(blocks.layout().offset(plan.rank), blocks.layout().bytes(plan.rank)));
    gather(plan, blocks, Team::everyone(plan), 0, one_each(plan), all);
}

void reduce_scatter(Plan &plan) {
    const Blocks blocks(plan);
    const uint64_t bytes = blocks.layout().bytes(plan.rank);
    const Extent sums = plan.scratch(blocks.layout().end()),
                 sum = sums.part(blocks.layout().offset(plan.rank), bytes);
    scatter(plan, blocks, Team::everyone(plan), 0, one_each(plan),
            plan.in(0, blocks.layout().end()), sums);
    plan.finish(sum);
    plan.copy(sum, plan.out(0, bytes));
}

} // namespace dtrain::collectives::hierarchical_parts
