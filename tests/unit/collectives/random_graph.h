// Random connected graphs for the tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/graph/graph.h"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <utility>

// A ring in one direction (so that all are reached) and about `more` further edges per rank, all
// both ways if symmetric. Metropolis-Hastings weights, or random ones whose rows sum to one.
inline dtrain::collectives::Graph random_graph(std::mt19937_64 &random, int32_t size,
                                               bool symmetric, int32_t more = 2) {
    using namespace dtrain::collectives;
    std::set<std::pair<int32_t, int32_t>> pairs;
    auto add = [&](int32_t from, int32_t to) {
        if (from == to) return;
        pairs.insert({from, to});
        if (symmetric) pairs.insert({to, from});
    };
    for (int32_t r = 0; r < size; r++) add(r, (r + 1) % size);
    for (int32_t i = 0; i < more * size; i++)
        add(int32_t(random() % uint64_t(size)), int32_t(random() % uint64_t(size)));
    std::vector<Edge> edges;
    for (auto [from, to] : pairs) edges.push_back({from, to, 1 + double(random() % 1000)});
    std::shuffle(edges.begin(), edges.end(), random);
    auto count = size_t(size);
    std::vector<double> self(count), sums(count);
    if (symmetric) {
        if (metropolis_weights(size, edges, self) != DTRAIN_OK) std::abort();
        return Graph(self, edges);
    }
    for (size_t r = 0; r < count; r++) sums[r] = self[r] = double(random() % 1000 + 1);
    for (const Edge &edge : edges) sums[size_t(edge.to)] += edge.weight;
    for (size_t r = 0; r < count; r++) self[r] /= sums[r];
    for (Edge &edge : edges) edge.weight /= sums[size_t(edge.to)];
    return Graph(self, edges);
}
