// Stores a weighted graph and checks its edges and weights.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/graph/graph.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace dtrain::collectives {
namespace {

constexpr double tolerance = 1e-6; // of sums of weights

bool by_target(const Edge &a, const Edge &b) {
    return std::tie(a.to, a.from) < std::tie(b.to, b.from);
}
bool by_source(const Edge &a, const Edge &b) {
    return std::tie(a.from, a.to) < std::tie(b.from, b.to);
}

Status check_weight(double weight, int32_t from, int32_t to, bool is_signed) {
    if (!std::isfinite(weight))
        return fail(DTRAIN_ERR_INVALID, "the weight of the edge from rank %d to rank %d is %g",
                    from, to, weight);
    if (weight < 0 && !is_signed)
        return fail(DTRAIN_ERR_INVALID,
                    "the weight of the edge from rank %d to rank %d is %g; negative weights "
                    "need DTRAIN_GRAPH_SIGNED",
                    from, to, weight);
    return DTRAIN_OK;
}

// Follows edges with nonzero weights from rank 0 on, forwards or backwards. Returns a rank that it
// does not reach, or -1.
int32_t unreached(const Graph &graph, bool forwards) {
    std::vector<bool> reached(size_t(graph.size()));
    std::vector<int32_t> next = {0};
    reached[0] = true;
    while (!next.empty()) {
        int32_t rank = next.back();
        next.pop_back();
        for (const Edge &edge : forwards ? graph.out_of(rank) : graph.into(rank)) {
            int32_t other = forwards ? edge.to : edge.from;
            if (edge.weight == 0 || reached[size_t(other)]) continue;
            reached[size_t(other)] = true;
            next.push_back(other);
        }
    }
    auto missing = std::find(reached.begin(), reached.end(), false);
    return missing == reached.end() ? -1 : int32_t(missing - reached.begin());
}

} // namespace

Graph::Graph(std::vector<double> self, std::vector<Edge> edges)
    : self_(std::move(self)), in_(std::move(edges)), out_(in_), first_in_(self_.size() + 1),
      first_out_(self_.size() + 1) {
    std::sort(in_.begin(), in_.end(), by_target);
    std::sort(out_.begin(), out_.end(), by_source);
    for (const Edge &edge : in_) {
        first_in_[size_t(edge.to) + 1]++;
        first_out_[size_t(edge.from) + 1]++;
    }
    for (size_t i = 0; i < self_.size(); i++) {
        first_in_[i + 1] += first_in_[i];
        first_out_[i + 1] += first_out_[i];
    }
}

std::vector<Edge> Graph::row(int32_t rank) const {
    std::span<const Edge> others = into(rank);
    std::vector<Edge> row(others.begin(), others.end());
    Edge own = {rank, rank, self(rank)};
    row.insert(std::lower_bound(row.begin(), row.end(), own, by_target), own);
    return row;
}

Status check_edges(int32_t size, std::span<const double> self, std::span<const Edge> edges,
                   bool is_signed) {
    for (int32_t rank = 0; rank < size; rank++)
        if (Status s = check_weight(self[size_t(rank)], rank, rank, is_signed); s != DTRAIN_OK)
            return s;
    for (const Edge &edge : edges) {
        for (int32_t rank : {edge.from, edge.to})
            if (rank < 0 || rank >= size)
                return fail(DTRAIN_ERR_INVALID,
                            "the edge from rank %d to rank %d is not within the %d ranks",
                            edge.from, edge.to, size);
        if (edge.from == edge.to)
            return fail(DTRAIN_ERR_INVALID, "rank %d names itself as its neighbor; use self_weight",
                        edge.from);
        if (Status s = check_weight(edge.weight, edge.from, edge.to, is_signed); s != DTRAIN_OK)
            return s;
    }
    std::vector<Edge> sorted(edges.begin(), edges.end());
    std::sort(sorted.begin(), sorted.end(), by_target);
    auto twice = std::adjacent_find(sorted.begin(), sorted.end(), [](const Edge &a, const Edge &b) {
        return a.from == b.from && a.to == b.to;
    });
    if (twice != sorted.end())
        return fail(DTRAIN_ERR_INVALID, "the edge from rank %d to rank %d is given twice",
                    twice->from, twice->to);
    return DTRAIN_OK;
}

Status check_mixing(const Graph &graph, bool rows_only) {
    for (int32_t rank = 0; rank < graph.size(); rank++) {
        double row = graph.self(rank);
        for (const Edge &edge : graph.into(rank)) row += edge.weight;
        if (std::fabs(row - 1) > tolerance)
            return fail(DTRAIN_ERR_INVALID,
                        "the weights that rank %d averages with sum to %.9g, not to 1", rank, row);
    }
    for (int32_t rank = 0; rank < graph.size() && !rows_only; rank++) {
        double column = graph.self(rank);
        for (const Edge &edge : graph.out_of(rank)) column += edge.weight;
        if (std::fabs(column - 1) > tolerance)
            return fail(DTRAIN_ERR_INVALID,
                        "the weights given to rank %d's value sum to %.9g, not to 1, so "
                        "averages would drift from the mean; use doubly stochastic weights, or "
                        "DTRAIN_GRAPH_ROWS_ONLY if that is meant",
                        rank, column);
    }
    if (int32_t rank = unreached(graph, true); rank >= 0)
        return fail(DTRAIN_ERR_INVALID, "not connected: no path leads from rank 0 to rank %d",
                    rank);
    if (int32_t rank = unreached(graph, false); rank >= 0)
        return fail(DTRAIN_ERR_INVALID, "not connected: no path leads from rank %d to rank 0",
                    rank);
    return DTRAIN_OK;
}

} // namespace dtrain::collectives
