// A binomial tree below the root: log2(n) latencies. Vectors pass through it in chunks.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/shared.h"
#include "collectives/call/layout.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace dtrain::collectives {
namespace {

// Positions count from the root, which is 0. The subtree of position p is [p, p + span(p)); its
// children are p + 1, p + 2, p + 4, ... within the subtree.
class Tree {
  public:
    Tree(const Plan &plan, int32_t root)
        : size_(plan.size), root_(root), position((plan.rank - root + size_) % size_) {}

    int32_t rank_of(int32_t at) const { return (at + root_) % size_; }
    int32_t parent() const { return rank_of(position & (position - 1)); }
    // Distance to the parent, and limit of the subtree's size.
    int32_t reach(int32_t at) const {
        return at ? at & -at : int32_t(std::bit_ceil(uint32_t(size_)));
    }
    int32_t span(int32_t at) const { return std::min(reach(at), size_ - at); }
    // Calls f(position of the child): nearest child first, or (backwards) farthest first, which has
    // the largest subtree.
    template <class F> void each_child(F f) const {
        for (int32_t d = 1; d < reach(position) && position + d < size_; d *= 2) f(position + d);
    }
    template <class F> void each_child_backwards(F f) const {
        for (int32_t d = reach(position) / 2; d > 0; d /= 2)
            if (position + d < size_) f(position + d);
    }

  private:
    const int32_t size_, root_;

  public:
    const int32_t position;
};

void reduce_chunk(Plan &plan, const Tree &tree, Extent own, Extent sum) {
    tree.each_child([&](int32_t child) {
        plan.recv_reduce(tree.rank_of(child), own, sum);
        own = sum;
    });
    if (tree.position) plan.send(tree.parent(), own);
}

void broadcast_chunk(Plan &plan, const Tree &tree, Extent chunk) {
    if (tree.position) plan.recv(tree.parent(), chunk);
    tree.each_child_backwards([&](int32_t child) { plan.send(tree.rank_of(child), chunk); });
}

// Where the blocks of a subtree lie in a rank's scratch: packed, in the order of positions.
std::vector<uint64_t> begins_of(const Tree &tree, const Layout &blocks) {
    std::vector<uint64_t> begins{0};
    for (int32_t i = 0; i < tree.span(tree.position); i++)
        begins.push_back(begins.back() + blocks.bytes(tree.rank_of(tree.position + i)));
    return begins;
}

// Calls f(first byte, packed position, bytes) for each run: both sides of a transfer cut it where
// the root's buffer is cut.
template <class F> void each_run_of(const Tree &tree, const Layout &blocks, int32_t position, F f) {
    uint64_t at = 0;
    blocks.each_run(tree.rank_of(position), tree.span(position),
                    [&](uint64_t begin, uint64_t bytes) {
                        f(begin, at, bytes);
                        at += bytes;
                    });
}

void limit_runs(Plan &plan, const Layout &blocks) {
    plan.limit_messages(blocks.packed() ? 2 : uint64_t(plan.size), blocks.end());
}

void broadcast(Plan &plan) {
    uint64_t bytes = output_bytes(plan.spec);
    plan.limit_messages(1, bytes);
    Tree tree(plan, plan.spec.root);
    plan.each_chunk(bytes, [&](uint64_t begin, uint64_t length) {
        broadcast_chunk(plan, tree, plan.out(begin, length));
    });
}

void reduce(Plan &plan) {
    uint64_t bytes = input_bytes(plan.spec);
    plan.limit_messages(1, bytes);
    Tree tree(plan, plan.spec.root);
    bool leaf = tree.span(tree.position) == 1;
    Extent sum = tree.position == 0 ? plan.out(0, bytes) : plan.scratch(leaf ? 0 : bytes);
    plan.each_chunk(bytes, [&](uint64_t begin, uint64_t length) {
        reduce_chunk(plan, tree, plan.in(begin, length), sum.part(begin, length));
        if (tree.position == 0) plan.finish(sum.part(begin, length));
    });
}

void allreduce(Plan &plan) {
    uint64_t bytes = input_bytes(plan.spec);
    plan.limit_messages(1, bytes);
    Tree tree(plan, 0);
    plan.each_chunk(bytes, [&](uint64_t begin, uint64_t length) {
        Extent sum = plan.out(begin, length);
        reduce_chunk(plan, tree, plan.in(begin, length), sum);
        if (tree.position == 0) plan.finish(sum);
        broadcast_chunk(plan, tree, sum);
    });
}

void gather(Plan &plan) {
    Layout blocks(plan.spec);
    limit_runs(plan, blocks);
    Tree tree(plan, plan.spec.root);
    Extent own = plan.in(0, blocks.bytes(plan.rank));
    if (tree.position && tree.span(tree.position) == 1) return plan.send(tree.parent(), own);
    std::vector<uint64_t> begins;
    Extent held;
    if (tree.position) {
        begins = begins_of(tree, blocks);
        held = plan.scratch(begins.back());
    }
    tree.each_child([&](int32_t child) {
        each_run_of(tree, blocks, child, [&](uint64_t in_root, uint64_t at, uint64_t bytes) {
            plan.recv(tree.rank_of(child),
                      tree.position ? held.part(begins[size_t(child - tree.position)] + at, bytes)
                                    : plan.out(in_root, bytes));
        });
    });
    if (tree.position == 0) return plan.copy(own, plan.out(blocks.offset(plan.rank), own.bytes));
    plan.copy(own, held.part(0, own.bytes));
    each_run_of(tree, blocks, tree.position, [&](uint64_t, uint64_t at, uint64_t bytes) {
        plan.send(tree.parent(), held.part(at, bytes));
    });
}

void scatter(Plan &plan) {
    Layout blocks(plan.spec);
    limit_runs(plan, blocks);
    Tree tree(plan, plan.spec.root);
    Extent own = plan.out(0, blocks.bytes(plan.rank));
    if (tree.position && tree.span(tree.position) == 1) return plan.recv(tree.parent(), own);
    std::vector<uint64_t> begins;
    Extent held;
    if (tree.position) {
        begins = begins_of(tree, blocks);
        held = plan.scratch(begins.back());
        each_run_of(tree, blocks, tree.position, [&](uint64_t, uint64_t at, uint64_t bytes) {
            plan.recv(tree.parent(), held.part(at, bytes));
        });
    }
    tree.each_child_backwards([&](int32_t child) {
        each_run_of(tree, blocks, child, [&](uint64_t in_root, uint64_t at, uint64_t bytes) {
            plan.send(tree.rank_of(child),
                      tree.position ? held.part(begins[size_t(child - tree.position)] + at, bytes)
                                    : plan.in(in_root, bytes));
        });
    });
    plan.copy(tree.position ? held.part(0, own.bytes)
                            : plan.in(blocks.offset(plan.rank), own.bytes),
              own);
}

// The bytes carry no data; the copies make `heard` wait for all children.
void barrier(Plan &plan) {
    plan.limit_messages(1, 1);
    Tree tree(plan, 0);
    const Extent heard = plan.scratch(1);
    tree.each_child([&](int32_t child) {
        const Extent arrived = plan.scratch(1);
        plan.recv(tree.rank_of(child), arrived);
        plan.copy(arrived, heard);
    });
    if (tree.position) plan.send(tree.parent(), heard);
    broadcast_chunk(plan, tree, heard);
}

// The longest path has one hop per bit. The root serves one more child before or after it.
double vectors_path(const Formula &f) {
    Chunks chunks = f.cut(f.m);
    double depth = f.log2_down(), children = f.log2_up(), wire = chunks.bytes * f.wire;
    double up = std::max(f.o + chunks.bytes * f.sum, wire), down = std::max(f.o, wire);
    double first_up = depth * f.hop(chunks.bytes, f.sum) + (children - depth) * up;
    double first_down = depth * f.hop(chunks.bytes) + (children - depth) * down;
    double more = (chunks.count - 1) * children;
    if (f.kind == Kind::reduce) return first_up + more * up;
    if (f.kind == Kind::broadcast) return first_down + more * down;
    return first_up + first_down + more * std::max(2 * f.o + chunks.bytes * f.sum, wire);
}

double vectors_cost(const Formula &f) {
    const double up = f.kind != Kind::broadcast ? f.to_one(1) : 0,
                 down = f.kind != Kind::reduce ? f.to_one(0) : 0;
    return f.path_and_work(vectors_path, up + down);
}

double blocks_cost(const Formula &f) { return doubling_blocks_cost(f, f.n, f.m, true); }

// Twice the longest path of the tree. A core handles four messages, two of them sends, for each of
// its ranks.
double barrier_path(const Formula &f) {
    const double depth = f.log2_down(), children = f.log2_up(), between = std::max(f.o, f.wire);
    return 2 * (depth * f.hop(1) + (children - depth) * between) + f.copy;
}
double barrier_cost(const Formula &f) { return f.path_and_work(barrier_path, 4 * f.o); }

constexpr Method methods[] = {
    {Kind::allreduce, allreduce, vectors_cost}, {Kind::reduce, reduce, vectors_cost},
    {Kind::broadcast, broadcast, vectors_cost}, {Kind::gather, gather, blocks_cost},
    {Kind::scatter, scatter, blocks_cost},      {Kind::barrier, barrier, barrier_cost},
};

} // namespace

constinit const Description algorithms::binomial_tree = {
    .about = "a binomial tree below the root, through which vectors pass in chunks",
    .source = "",
    .methods = methods,
    .crossing = Crossing::few_ranks,
};

} // namespace dtrain::collectives
