// Graphs as the test knows them: a dense matrix, and the parameters that ask the library for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "contract/ranks.h"

#include <cmath>
#include <random>

namespace graphs {

constexpr uint32_t named[] = {DTRAIN_GRAPH_RING, DTRAIN_GRAPH_GRID, DTRAIN_GRAPH_EXPONENTIAL,
                              DTRAIN_GRAPH_FULL};

// W[to][from]; an edge is where a weight is not 0.
using Matrix = std::vector<std::vector<double>>;

// A directed ring and further edges, rows summing to one, the same on all ranks.
inline Matrix random_matrix(std::mt19937_64 &random, int size) {
    auto n = size_t(size);
    Matrix w(n, std::vector<double>(n));
    for (size_t to = 0; to < n; to++) {
        double sum = 0;
        for (size_t from = 0; from < n; from++) {
            bool edge = from == to || (from + 1) % n == to || random() % 3 == 0;
            if (edge) sum += w[to][from] = double(1 + random() % 100);
        }
        for (double &x : w[to]) x /= sum;
    }
    return w;
}

struct Handle {
    dtrain_graph_t *graph = nullptr;
    ~Handle() { dtrain_graph_destroy(graph); }
};

inline dtrain_status_t create(dtrain_comm_t *comm, uint32_t kind, dtrain_graph_t **graph) {
    dtrain_graph_params_t params;
    DTRAIN_INIT(&params);
    params.kind = kind;
    return dtrain_graph_create(comm, &params, graph);
}

// Both sides of every edge are stated.
inline dtrain_status_t create(dtrain_comm_t *comm, const Matrix &w, dtrain_graph_t **graph) {
    auto rank = size_t(dtrain_comm_rank(comm));
    std::vector<int32_t> in, out;
    std::vector<double> weights;
    for (size_t other = w.size(); other-- > 0;) { // not in the order of the ranks
        if (other == rank) continue;
        if (w[rank][other] != 0) {
            in.push_back(int32_t(other));
            weights.push_back(w[rank][other]);
        }
        if (w[other][rank] != 0) out.push_back(int32_t(other));
    }
    in.reserve(1), weights.reserve(1), out.reserve(1); // not NULL when there are none
    dtrain_graph_params_t params;
    DTRAIN_INIT(&params);
    params.kind = DTRAIN_GRAPH_CUSTOM;
    params.flags = DTRAIN_GRAPH_ROWS_ONLY;
    params.in_count = int32_t(in.size());
    params.in_neighbors = in.data();
    params.in_weights = weights.data();
    params.out_count = int32_t(out.size());
    params.out_neighbors = out.data();
    params.self_weight = w[rank][rank];
    return dtrain_graph_create(comm, &params, graph);
}

// The rows of all ranks, as their graphs tell them.
inline Matrix matrix_of(dtrain_comm_t *comm, dtrain_graph_t *graph) {
    auto n = size_t(dtrain_comm_size(comm));
    std::vector<int32_t> ranks(n);
    std::vector<double> weights(n), row(n), all(n * n);
    int32_t count =
        dtrain_graph_neighbors(graph, DTRAIN_GRAPH_IN, ranks.data(), weights.data(), int32_t(n));
    REQUIRE(count >= 0 && count < int32_t(n));
    for (size_t i = 0; i < size_t(count); i++) row[size_t(ranks[i])] = weights[i];
    OK(dtrain_graph_self_weight(graph, &row[size_t(dtrain_comm_rank(comm))]));
    OK(dtrain_allgather(comm, row.data(), all.data(), n, DTRAIN_F64, nullptr, nullptr));
    Matrix w;
    for (size_t r = 0; r < n; r++)
        w.emplace_back(all.begin() + int64_t(r * n), all.begin() + int64_t(r * n + n));
    return w;
}

} // namespace graphs
