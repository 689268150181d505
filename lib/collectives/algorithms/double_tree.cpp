// Two binary trees that carry half of the vector each. An inner rank of one tree is a leaf of the
// other, so all ranks use their bandwidth in both directions. Takes about 2 log2(n) latencies plus
// the bytes, in chunks.
// SPDX-License-Identifier: Apache-2.0
//
// Source: Sanders, Speck, Traeff: Two-tree algorithms for full bandwidth broadcast, reduction and
// scan, Parallel Computing 35 (2009).
#include "collectives/algorithms/algorithm.h"
#include "collectives/call/layout.h"

#include <algorithm>
#include <array>

namespace dtrain::collectives {
namespace {

// A rank's neighbors in one tree; -1: none.
struct Node {
    int32_t parent = -1;
    std::array<int32_t, 2> children{-1, -1};
    bool leaf() const { return children[0] < 0 && children[1] < 0; }
};

// The in-order binary tree over 1 .. n: odd numbers are leaves; the lowest set bit of a number
// gives its height. 0 means none.
int32_t parent_of(int32_t number, int32_t n) {
    int32_t bit = number & -number, parent = (number ^ bit) | bit << 1;
    return parent <= n ? parent : number ^ bit;
}
int32_t left_child(int32_t number) {
    int32_t bit = number & -number;
    return bit > 1 ? number - bit / 2 : 0;
}
int32_t right_child(int32_t number, int32_t n) {
    for (int32_t bit = (number & -number) / 2; bit > 0; bit /= 2)
        if (number + bit <= n) return number + bit;
    return 0;
}

// Members are 0 .. n - 1. The second tree renumbers them so that leaves become inner nodes:
// mirrored for an even n, shifted by one for an odd n.
int32_t number_of(int32_t member, int32_t n, int tree) {
    if (tree == 0) return member + 1;
    return n % 2 == 0 ? n - member : (member + 1) % n + 1;
}
int32_t member_of(int32_t number, int32_t n, int tree) {
    if (tree == 0) return number - 1;
    return n % 2 == 0 ? n - number : (number - 2 + n) % n;
}

Node node_of(int32_t member, int32_t n, int tree) {
    int32_t number = number_of(member, n, tree);
    auto back = [&](int32_t other) { return other ? member_of(other, n, tree) : -1; };
    return {back(parent_of(number, n)), {back(left_child(number)), back(right_child(number, n))}};
}

int32_t top_of(int32_t n, int tree) {
    int32_t number = 1;
    while (number * 2 <= n) number *= 2;
    return member_of(number, n, tree);
}

using Trees = std::array<Node, 2>;

// Over all ranks, for all-reduce.
Trees trees_of_all(const Plan &plan) {
    return {node_of(plan.rank, plan.size, 0), node_of(plan.rank, plan.size, 1)};
}

// Over all ranks but the root, which is above both trees: member i is the rank i + 1 places after
// the root.
Trees trees_below_root(const Plan &plan) {
    int32_t n = plan.size - 1, root = plan.spec.root;
    auto rank_of = [&](int32_t member) {
        return member < 0 ? -1 : (root + 1 + member) % plan.size;
    };
    Trees trees;
    for (int tree = 0; tree < 2; tree++) {
        if (plan.rank == root) {
            trees[size_t(tree)].children[0] = rank_of(top_of(n, tree));
            continue;
        }
        Node node = node_of((plan.rank - root - 1 + plan.size) % plan.size, n, tree);
        for (int32_t &child : node.children) child = rank_of(child);
        node.parent = node.parent < 0 ? root : rank_of(node.parent);
        trees[size_t(tree)] = node;
    }
    return trees;
}

// Calls f(tree, first byte, bytes) for the chunks of both halves in turn. The order is equal on all
// ranks, so that messages of both trees between the same pair keep their numbers.
template <class F> void each_chunk_of_halves(Plan &plan, F f) {
    uint64_t element = plan.spec.element_bytes, bytes = plan.spec.count * element;
    uint64_t half = part_begin(plan.spec.count, 2, 1) * element;
    plan.limit_messages(4, bytes - half);
    for (uint64_t at = 0; at < bytes - half; at += plan.chunk()) {
        if (at < half) f(size_t{0}, at, std::min(plan.chunk(), half - at));
        f(size_t{1}, half + at, std::min(plan.chunk(), bytes - half - at));
    }
}

void reduce_chunk(Plan &plan, const Node &node, Extent own, Extent sum) {
    for (int32_t child : node.children) {
        if (child < 0) continue;
        plan.recv_reduce(child, own, sum);
        own = sum;
    }
    if (node.parent >= 0) plan.send(node.parent, own);
}

void broadcast_chunk(Plan &plan, const Node &node, Extent chunk) {
    if (node.parent >= 0) plan.recv(node.parent, chunk);
    for (int32_t child : node.children)
        if (child >= 0) plan.send(child, chunk);
}

void allreduce(Plan &plan) {
    Trees trees = trees_of_all(plan);
    each_chunk_of_halves(plan, [&](size_t tree, uint64_t begin, uint64_t bytes) {
        const Node &node = trees[tree];
        Extent sum = plan.out(begin, bytes);
        reduce_chunk(plan, node, plan.in(begin, bytes), sum);
        if (node.parent < 0) plan.finish(sum);
        broadcast_chunk(plan, node, sum);
    });
}

void reduce(Plan &plan) {
    Trees trees = trees_below_root(plan);
    bool root = plan.rank == plan.spec.root;
    uint64_t bytes_of_all = input_bytes(plan.spec);
    bool inner = !trees[0].leaf() || !trees[1].leaf();
    Extent sums = root ? plan.out(0, bytes_of_all) : plan.scratch(inner ? bytes_of_all : 0);
    each_chunk_of_halves(plan, [&](size_t tree, uint64_t begin, uint64_t bytes) {
        Extent sum = sums.part(begin, bytes);
        reduce_chunk(plan, trees[tree], plan.in(begin, bytes), sum);
        if (root) plan.finish(sum);
    });
}

void broadcast(Plan &plan) {
    Trees trees = trees_below_root(plan);
    each_chunk_of_halves(plan, [&](size_t tree, uint64_t begin, uint64_t bytes) {
        broadcast_chunk(plan, trees[tree], plan.out(begin, bytes));
    });
}

// Time of the sums between two pairs of chunks. If summing is slower than the link, the first
// children's chunks queue ahead of the second children's (first come, first served), so each level
// lags; the size of the lag was measured in the simulation.
double sums_of_trees(double sum, double wire, double height) {
    if (sum <= wire) return 2 * sum;
    double lag = wire > 0 ? 2 + 2 * sum / (3 * wire) : height + 1;
    return sum * std::clamp(lag, 2.0, std::max(2.5, height + 1));
}

// Two streams that share a link take this much longer than one with all of the bytes: measured for
// 16 MiB (`bench/hosts --kinds broadcast --hosts 4 --ranks-per-host 1`).
constexpr double two_on_a_link = 1.08;

double cost(const Formula &f) {
    Chunks chunks = f.cut(f.m / 2, 4); // of each half
    double wire = chunks.bytes * f.wire, sum = chunks.bytes * f.sum, more = chunks.count - 1;
    double up = f.hop(chunks.bytes, f.sum), down = f.hop(chunks.bytes);
    // On each level the second child comes later; the topmost rank may have only one. If summing is
    // the bottleneck, the first child's next chunk comes between.
    double later_up = std::max(f.o + sum, wire), later_down = std::max(f.o, wire);
    if (sum >= wire) later_up += sum * std::min(more, 1.5);
    // Between two pairs of chunks: a transfer over the busiest link for each child and parent, and
    // the transfers that wait behind chunks that leaves have ready from the start.
    if (f.kind == Kind::allreduce) {
        double height = f.log2_down(), slots = height - !f.folded(), peers = std::min(f.n, 4.0);
        double links = peers * wire + (f.n > 3 ? std::max(wire, sum) : 0);
        return height * (up + down) + slots * (later_up + later_down) +
               more * std::max(2 * peers * f.o + sums_of_trees(sum, wire, height), links);
    }
    double height = f.log2_up(), slots = height - f.lonely_fold();
    if (f.kind == Kind::broadcast)
        return height * down + slots * later_down +
               more * std::max(4 * f.o, 2 * wire * two_on_a_link);
    double behind = f.size == 2 ? 0 : f.size == 3 ? wire : std::max(wire, 2 * sum);
    double busy = 4 * f.o + sums_of_trees(sum, wire, height);
    // Sums that take longer than the wire leave room for chunks of other levels, which delay these.
    const double slow = f.size > 8 && sum > wire ? std::min(sum / wire - 1, 1.0) : 0;
    busy += slow * sum * 0.75;
    later_up += slow * sum * std::min(more, 1.0);
    return height * up + slots * later_up + more * std::max(busy, 2 * wire + behind);
}

constexpr Method methods[] = {
    {Kind::allreduce, allreduce, cost},
    {Kind::reduce, reduce, cost},
    {Kind::broadcast, broadcast, cost},
};

} // namespace

constinit const Description algorithms::double_tree = {
    .about = "two binary trees; an inner rank of one is a leaf of the other",
    .source = "Sanders, Speck, Traeff 2009",
    .methods = methods,
    .crossing = Crossing::few_ranks,
};

} // namespace dtrain::collectives
