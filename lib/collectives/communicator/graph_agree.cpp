// Makes one graph on all ranks of a communicator.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/graph_agree.h"

#include "collectives/communicator/agreement.h"

#include <algorithm>

namespace dtrain::collectives {
namespace {

constexpr int32_t not_stated = -1;

// What each rank tells the others about its edges, before the lists follow.
struct Wish {
    double self_weight = 0;
    int32_t in_count = 0, out_count = not_stated;
};

struct InEdge {
    double weight = 0;
    int32_t from = 0, reserved = 0;
};

// A single rank may list one neighbor, so that it gets the error that the neighbor does not exist.
bool possible(int32_t count, int32_t size) { return count >= 0 && count < std::max(size, 2); }

Status refuse_lists(const dtrain_graph_params_t &p, int32_t size) {
    bool given = p.in_count != 0 || p.out_count != 0 || p.in_neighbors != nullptr ||
                 p.in_weights != nullptr || p.out_neighbors != nullptr || p.self_weight != 0;
    if (p.kind != DTRAIN_GRAPH_CUSTOM && given)
        return fail(DTRAIN_ERR_INVALID,
                    "neighbors and weights are only for DTRAIN_GRAPH_CUSTOM, not for kind %u",
                    p.kind);
    for (int32_t count : {p.in_count, p.out_count})
        if (!possible(count, size))
            return fail(DTRAIN_ERR_INVALID, "%d neighbors among %d ranks", count, size);
    if ((p.in_count > 0 && p.in_neighbors == nullptr) ||
        (p.out_count > 0 && p.out_neighbors == nullptr))
        return fail(DTRAIN_ERR_INVALID,
                    "in_neighbors or out_neighbors is NULL, but its count is not 0");
    if (p.in_weights == nullptr && p.self_weight != 0)
        return fail(DTRAIN_ERR_INVALID, "a self_weight without in_weights is not possible");
    return DTRAIN_OK;
}

Status refuse(const dtrain_graph_params_t &p, int32_t size) {
    if (p.kind < DTRAIN_GRAPH_RING || p.kind > DTRAIN_GRAPH_CUSTOM)
        return fail(DTRAIN_ERR_INVALID,
                    "unknown kind %u; known are 1 (DTRAIN_GRAPH_RING) to 5 "
                    "(DTRAIN_GRAPH_CUSTOM)",
                    p.kind);
    if ((p.flags & ~(DTRAIN_GRAPH_ROWS_ONLY | DTRAIN_GRAPH_SIGNED)) != 0)
        return fail(DTRAIN_ERR_UNSUPPORTED, "unknown flags 0x%llx",
                    static_cast<unsigned long long>(p.flags));
    return refuse_lists(p, size);
}

// Checks the counts again, because they come from other processes.
Status check_counts(const std::vector<Wish> &wishes) {
    auto size = int32_t(wishes.size());
    uint64_t in = 0, out = 0;
    for (int32_t rank = 0; rank < size; rank++) {
        const Wish &wish = wishes[size_t(rank)];
        if (!possible(wish.in_count, size) ||
            (wish.out_count != not_stated && !possible(wish.out_count, size)))
            return fail(DTRAIN_ERR_INVALID,
                        "rank %d gives %d in-neighbors and %d out-neighbors among %d ranks", rank,
                        wish.in_count, wish.out_count, size);
        in += uint64_t(wish.in_count);
        out += uint64_t(std::max(wish.out_count, 0));
    }
    if (in <= max_edges && out <= max_edges) return DTRAIN_OK;
    return fail(DTRAIN_ERR_LIMIT, "the graph has %llu edges; the maximum is %llu",
                static_cast<unsigned long long>(std::max(in, out)),
                static_cast<unsigned long long>(max_edges));
}

template <class T>
Status allgather(Communicator &comm, int64_t deadline_ns, const T &mine, std::vector<T> &all) {
    all.resize(size_t(comm.size()));
    return comm.run_until({.kind = Kind::allgather,
                           .send = &mine,
                           .recv = all.data(),
                           .count = sizeof mine,
                           .dtype = DTRAIN_U8},
                          deadline_ns);
}

// Gathers counts[rank] items of each rank into one array, in the order of the ranks.
template <class T>
Status allgather(Communicator &comm, int64_t deadline_ns, const std::vector<T> &mine,
                 std::vector<uint64_t> counts, std::vector<T> &all) {
    uint64_t total = 0;
    for (uint64_t &count : counts) {
        total += count;
        count *= sizeof(T);
    }
    all.resize(total);
    return comm.run_until({.kind = Kind::allgather,
                           .ragged = true,
                           .send = mine.data(),
                           .recv = all.data(),
                           .counts = counts.data(),
                           .dtype = DTRAIN_U8},
                          deadline_ns);
}

Status gather_edges(Communicator &comm, int64_t deadline_ns, const dtrain_graph_params_t &params,
                    const std::vector<Wish> &wishes, std::vector<Edge> &out) {
    std::vector<InEdge> mine, all;
    for (int32_t i = 0; i < params.in_count; i++)
        mine.push_back(
            {params.in_weights != nullptr ? params.in_weights[i] : 0, params.in_neighbors[i], 0});
    std::vector<uint64_t> counts;
    for (const Wish &wish : wishes) counts.push_back(uint64_t(wish.in_count));
    if (Status s = allgather(comm, deadline_ns, mine, counts, all); s != DTRAIN_OK) return s;
    auto next = all.begin();
    for (int32_t rank = 0; rank < comm.size(); rank++)
        for (uint64_t i = 0; i < counts[size_t(rank)]; i++, ++next)
            out.push_back({next->from, rank, next->weight});
    return DTRAIN_OK;
}

// If a rank lists its out_neighbors, they must be the ranks that list it in their in_neighbors.
Status compare_senders(Communicator &comm, int64_t deadline_ns, const dtrain_graph_params_t &params,
                       const std::vector<Wish> &wishes, const Graph &graph) {
    std::vector<int32_t> mine, all;
    if (params.out_neighbors != nullptr)
        mine.assign(params.out_neighbors, params.out_neighbors + params.out_count);
    std::vector<uint64_t> counts;
    for (const Wish &wish : wishes) counts.push_back(uint64_t(std::max(wish.out_count, 0)));
    if (Status s = allgather(comm, deadline_ns, mine, counts, all); s != DTRAIN_OK) return s;
    auto next = all.begin();
    for (int32_t rank = 0; rank < comm.size(); rank++) {
        std::vector<int32_t> stated(next, next + int64_t(counts[size_t(rank)])), heard;
        next += int64_t(counts[size_t(rank)]);
        if (wishes[size_t(rank)].out_count == not_stated) continue;
        std::sort(stated.begin(), stated.end());
        for (const Edge &edge : graph.out_of(rank)) heard.push_back(edge.to);
        auto [a, b] = std::mismatch(stated.begin(), stated.end(), heard.begin(), heard.end());
        if (a == stated.end() && b == heard.end()) continue;
        bool too_many = b == heard.end() || (a != stated.end() && *a <= *b);
        return fail(
            DTRAIN_ERR_MISMATCH,
            too_many ? "rank %d lists rank %d in out_neighbors, but that rank does not list it in "
                       "in_neighbors, or it is listed twice"
                     : "rank %d does not list rank %d in out_neighbors, but that rank lists it "
                       "in in_neighbors",
            rank, too_many ? *a : *b);
    }
    return DTRAIN_OK;
}

Status make_custom(Communicator &comm, int64_t deadline_ns, const dtrain_graph_params_t &params,
                   const std::vector<Wish> &wishes, Graph &out) {
    std::vector<Edge> edges;
    if (Status s = gather_edges(comm, deadline_ns, params, wishes, edges); s != DTRAIN_OK) return s;
    std::vector<double> self;
    for (const Wish &wish : wishes) self.push_back(wish.self_weight);
    bool is_signed = (params.flags & DTRAIN_GRAPH_SIGNED) != 0;
    Status verdict = check_edges(comm.size(), self, edges, is_signed);
    if (verdict == DTRAIN_OK && params.in_weights == nullptr)
        verdict = metropolis_weights(comm.size(), edges, self);
    if (verdict != DTRAIN_OK) return verdict;
    out = Graph(std::move(self), std::move(edges));
    return compare_senders(comm, deadline_ns, params, wishes, out);
}

Status make(Communicator &comm, int64_t deadline_ns, const dtrain_graph_params_t &params,
            Graph &out) {
    Wish mine = {.self_weight = params.self_weight, .in_count = params.in_count};
    if (params.out_neighbors != nullptr) mine.out_count = params.out_count;
    std::vector<Wish> wishes;
    if (Status s = allgather(comm, deadline_ns, mine, wishes); s != DTRAIN_OK) return s;
    if (Status s = check_counts(wishes); s != DTRAIN_OK) return s;
    Status s = params.kind == DTRAIN_GRAPH_CUSTOM
                   ? make_custom(comm, deadline_ns, params, wishes, out)
                   : make_graph(params.kind, comm.size(), out);
    if (s != DTRAIN_OK) return s;
    return check_mixing(out, (params.flags & DTRAIN_GRAPH_ROWS_ONLY) != 0);
}

} // namespace

Status agree_on_graph(Communicator &comm, const dtrain_graph_params_t &params,
                      std::shared_ptr<const Graph> &out) {
    const int64_t deadline_ns = comm.deadline(0);
    Agreement agreement(cluster::CallKind::graph_create);
    agreement.check(refuse(params, comm.size()))
        .add("kind", uint64_t(params.kind))
        .add("flags", params.flags)
        .add("in_weights:", params.in_weights != nullptr ? "given" : "not given");
    if (Status s = agreement.reach(comm, deadline_ns); s != DTRAIN_OK) return s;
    Graph made({}, {});
    if (Status s = make(comm, deadline_ns, params, made); s != DTRAIN_OK)
        return fail_within(s, "graph_create");
    out = std::make_shared<const Graph>(std::move(made));
    return DTRAIN_OK;
}

} // namespace dtrain::collectives
