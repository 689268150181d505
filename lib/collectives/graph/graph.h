// A weighted directed graph over the ranks of a communicator: which ranks average with which.
// SPDX-License-Identifier: Apache-2.0
//
// The graph is a mixing matrix W: rank i's average is the sum over j of W[i][j] times rank j's
// value. Every rank holds the whole matrix, so that each can check it and all reach the same
// verdict.
#pragma once
#include "base/status.h"

#include <cstdint>
#include <span>
#include <vector>

namespace dtrain::collectives {

struct Edge {
    int32_t from = 0, to = 0;
    double weight = 0; // W[to][from]

    bool operator==(const Edge &) const = default;
};

inline constexpr uint64_t max_edges = 1 << 20; // limit of one graph: 48 MiB on each rank

class Graph { // immutable: any thread
  public:
    // edges: in any order, between ranks 0 to self.size() - 1, without self edges and duplicates
    // (check_edges() checks this). self[i] is W[i][i].
    Graph(std::vector<double> self, std::vector<Edge> edges);

    int32_t size() const { return int32_t(self_.size()); }
    double self(int32_t rank) const { return self_[size_t(rank)]; }
    // The neighbors in the order of their ranks.
    std::span<const Edge> into(int32_t rank) const { return part(in_, first_in_, rank); }
    std::span<const Edge> out_of(int32_t rank) const { return part(out_, first_out_, rank); }
    // The terms that rank's average adds up, including its own, in the order of the ranks.
    std::vector<Edge> row(int32_t rank) const;

  private:
    using Firsts = std::vector<size_t>; // by rank; one more at the end
    static std::span<const Edge> part(const std::vector<Edge> &edges, const Firsts &first,
                                      int32_t rank) {
        return std::span(edges).subspan(first[size_t(rank)],
                                        first[size_t(rank) + 1] - first[size_t(rank)]);
    }

    std::vector<double> self_;
    std::vector<Edge> in_, out_; // the same edges, sorted by (to, from) and by (from, to)
    Firsts first_in_, first_out_;
};

// ERR_INVALID, naming the edge: ranks out of range, a self edge, a duplicate edge, a weight that is
// not a number, or a negative weight unless `is_signed`.
Status check_edges(int32_t size, std::span<const double> self, std::span<const Edge> edges,
                   bool is_signed);

// ERR_INVALID, naming the ranks: a row whose weights do not sum to one, such a column (unless
// `rows_only`), or a rank that another rank's value never reaches.
Status check_mixing(const Graph &graph, bool rows_only);

// Makes the graphs of dtrain.h (DTRAIN_GRAPH_*, except CUSTOM). ERR_LIMIT: too many edges.
Status make_graph(uint32_t kind, int32_t size, Graph &out);

// Sets Metropolis-Hastings weights: symmetric, hence doubly stochastic. ERR_INVALID unless all
// edges go both ways. Source: Xiao, Boyd: Fast linear iterations for distributed averaging, Systems
// & Control Letters 53 (2004).
Status metropolis_weights(int32_t size, std::vector<Edge> &edges, std::vector<double> &self);

// Computes the largest modulus of W's eigenvalues besides the 1 of the common average, for a graph
// whose rows sum to one. In the long run one step leaves this fraction of the distance to the
// average. ERR_LIMIT: more than max_spectrum_ranks.
inline constexpr int32_t max_spectrum_ranks = 256; // a dense method: 30 matrix products
Status second_eigenvalue(const Graph &graph, double &modulus);

} // namespace dtrain::collectives
