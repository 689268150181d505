// Makes the named graphs and the default weights.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/graph/graph.h"

#include <algorithm>

#include "dtrain.h"

namespace dtrain::collectives {
namespace {

// The ranks from which a rank receives; may contain duplicates and the rank itself.
using Neighbors = std::vector<int32_t>;

Neighbors ring(int32_t rank, int32_t size) { return {(rank + 1) % size, (rank + size - 1) % size}; }

// A torus of rows x columns, as square as the number of ranks permits.
Neighbors grid(int32_t rank, int32_t size) {
    int32_t rows = 1;
    for (int32_t r = 1; r <= size / r; r++)
        if (size % r == 0) rows = r;
    int32_t columns = size / rows, row = rank / columns, column = rank % columns;
    Neighbors found;
    for (int32_t other : ring(row, rows)) found.push_back(other * columns + column);
    for (int32_t other : ring(column, columns)) found.push_back(row * columns + other);
    return found;
}

// Source: Assran, Loizou, Ballas, Rabbat: Stochastic gradient push for distributed deep learning,
// ICML 2019.
Neighbors exponential(int32_t rank, int32_t size) {
    Neighbors found;
    for (int64_t distance = 1; distance < size; distance *= 2)
        found.push_back(int32_t((rank - distance + size) % size));
    return found;
}

Neighbors full(int32_t, int32_t size) {
    Neighbors found;
    for (int32_t r = 0; r < size; r++) found.push_back(r);
    return found;
}

// Gives a rank and its neighbors equal weights. The result is doubly stochastic if all ranks have
// the same distances to their neighbors.
void uniform_weights(std::vector<Edge> &edges, std::vector<double> &self) {
    std::vector<int32_t> degree(self.size());
    for (const Edge &edge : edges) degree[size_t(edge.to)]++;
    for (Edge &edge : edges) edge.weight = 1.0 / (degree[size_t(edge.to)] + 1);
    for (size_t r = 0; r < degree.size(); r++) self[r] = 1.0 / (degree[r] + 1);
}

} // namespace

Status metropolis_weights(int32_t size, std::vector<Edge> &edges, std::vector<double> &self) {
    Graph graph(std::vector<double>(size_t(size)), edges);
    for (int32_t rank = 0; rank < size; rank++) {
        std::span<const Edge> in = graph.into(rank), out = graph.out_of(rank);
        for (size_t i = 0; i < std::max(in.size(), out.size()); i++) {
            if (i < in.size() && i < out.size() && in[i].from == out[i].to) continue;
            bool only_in = i == out.size() || (i < in.size() && in[i].from < out[i].to);
            const Edge &edge = only_in ? in[i] : out[i];
            return fail(DTRAIN_ERR_INVALID,
                        "rank %d receives from rank %d but not the other way around; such a graph "
                        "needs in_weights",
                        edge.to, edge.from);
        }
    }
    for (Edge &edge : edges)
        edge.weight =
            1.0 / double(1 + std::max(graph.into(edge.from).size(), graph.into(edge.to).size()));
    self.assign(size_t(size), 1);
    for (const Edge &edge : edges) self[size_t(edge.to)] -= edge.weight;
    return DTRAIN_OK;
}

Status make_graph(uint32_t kind, int32_t size, Graph &out) {
    using NeighborsFn = Neighbors(int32_t, int32_t);
    static constexpr NeighborsFn *kinds[] = {nullptr, ring, grid, exponential, full};
    std::vector<Edge> edges;
    for (int32_t rank = 0; rank < size; rank++) {
        Neighbors found = kinds[kind](rank, size);
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        if (edges.size() + found.size() > max_edges)
            return fail(DTRAIN_ERR_LIMIT, "over %d ranks the graph has more than %llu edges", size,
                        static_cast<unsigned long long>(max_edges));
        for (int32_t other : found)
            if (other != rank) edges.push_back({other, rank, 0});
    }
    std::vector<double> self(size_t(size), 1);
    if (kind == DTRAIN_GRAPH_EXPONENTIAL)
        uniform_weights(edges, self);
    else if (Status s = metropolis_weights(size, edges, self); s != DTRAIN_OK)
        return s;
    out = Graph(std::move(self), std::move(edges));
    return DTRAIN_OK;
}

} // namespace dtrain::collectives
