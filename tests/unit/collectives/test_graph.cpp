// Graphs: their shapes and weights, what is refused, spectral gaps against closed forms.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "collectives/graph/graph.h"
#include "random_graph.h"

#include "dtrain.h"

#include <cmath>
#include <functional>
#include <numbers>

using namespace dtrain;
using namespace dtrain::collectives;

namespace {

constexpr uint64_t seed = 20260;

Graph made(uint32_t kind, int32_t size) {
    Graph graph({}, {});
    assert_int_equal(make_graph(kind, size, graph), DTRAIN_OK);
    return graph;
}

double modulus(const Graph &graph) {
    double value = -1;
    assert_int_equal(second_eigenvalue(graph, value), DTRAIN_OK);
    return value;
}

void expect_near(double got, double want, double within, const char *what, int32_t size) {
    if (!(std::fabs(got - want) <= within))
        fail_msg("%s of %d: %.12g instead of %.12g", what, size, got, want);
}

std::set<int32_t> sources(const Graph &graph, int32_t rank) {
    std::set<int32_t> found;
    for (const Edge &edge : graph.into(rank)) {
        assert_int_equal(edge.to, rank);
        assert_true(found.empty() || edge.from > *found.rbegin());
        found.insert(edge.from);
    }
    return found;
}

void named_graphs(void **) {
    for (int32_t n = 1; n <= 17; n++) {
        int32_t rows = 1;
        while ((rows + 1) * (rows + 1) <= n) rows++;
        while (n % rows != 0) rows--;
        int32_t columns = n / rows;
        for (int32_t r = 0; r < n; r++) {
            std::set<int32_t> ring, grid, exponential, full;
            for (int32_t o = 0; o < n; o++) {
                int32_t back = (r - o + n) % n, down = std::abs(r / columns - o / columns),
                        across = std::abs(r % columns - o % columns);
                auto next = [](int32_t d, int32_t length) { return d == 1 || d == length - 1; };
                if (o == r) continue;
                full.insert(o);
                if (back == 1 || back == n - 1) ring.insert(o);
                if ((down == 0 && next(across, columns)) || (across == 0 && next(down, rows)))
                    grid.insert(o);
                if ((back & (back - 1)) == 0) exponential.insert(o);
            }
            assert_true(sources(made(DTRAIN_GRAPH_RING, n), r) == ring);
            assert_true(sources(made(DTRAIN_GRAPH_GRID, n), r) == grid);
            assert_true(sources(made(DTRAIN_GRAPH_EXPONENTIAL, n), r) == exponential);
            assert_true(sources(made(DTRAIN_GRAPH_FULL, n), r) == full);
        }
        for (uint32_t kind = DTRAIN_GRAPH_RING; kind <= DTRAIN_GRAPH_FULL; kind++)
            assert_int_equal(check_mixing(made(kind, n), false), DTRAIN_OK);
    }
    Graph graph({}, {});
    assert_int_equal(make_graph(DTRAIN_GRAPH_FULL, 2000, graph), DTRAIN_ERR_LIMIT);
}

void both_directions_are_the_same_edges(void **) {
    std::mt19937_64 random(seed);
    Graph graph = random_graph(random, 13, false);
    std::vector<Edge> in, out;
    for (int32_t r = 0; r < 13; r++) {
        for (const Edge &edge : graph.into(r)) in.push_back(edge);
        for (const Edge &edge : graph.out_of(r)) {
            assert_int_equal(edge.from, r);
            out.push_back(edge);
        }
        std::vector<Edge> row = graph.row(r);
        assert_int_equal(row.size(), graph.into(r).size() + 1);
        for (size_t i = 1; i < row.size(); i++) assert_true(row[i - 1].from < row[i].from);
    }
    assert_int_equal(in.size(), out.size());
    for (const Edge &edge : in) assert_true(std::count(out.begin(), out.end(), edge) == 1);
}

void closed_forms(void **) {
    const double turn = 2 * std::numbers::pi;
    for (int32_t n = 3; n <= 64; n++) {
        double ring = 0;
        for (int32_t k = 1; k < n; k++)
            ring = std::max(ring, std::fabs(1 + 2 * std::cos(turn * k / n)) / 3);
        expect_near(modulus(made(DTRAIN_GRAPH_RING, n)), ring, 1e-7, "ring", n);
        expect_near(modulus(made(DTRAIN_GRAPH_FULL, n)), 0, 1e-12, "full", n);
        // Ying, Yuan, Chen, Hu, Pan, Yin: Exponential graph is provably efficient for decentralized
        // deep training, NeurIPS 2021, for an even number of ranks.
        if (n % 2 == 0)
            expect_near(modulus(made(DTRAIN_GRAPH_EXPONENTIAL, n)),
                        1 - 2 / (1 + std::ceil(std::log2(n))), 1e-7, "exponential", n);
    }
    for (int32_t side = 3; side <= 8; side++) {
        double grid = 0;
        for (int32_t k = 1; k < side * side; k++)
            grid = std::max(grid, std::fabs(1 + 2 * std::cos(turn * (k % side) / side) +
                                            2 * std::cos(turn * (k / side) / side)) /
                                      5);
        expect_near(modulus(made(DTRAIN_GRAPH_GRID, side * side)), grid, 1e-7, "grid", side);
    }
    expect_near(modulus(made(DTRAIN_GRAPH_RING, 1)), 0, 0, "alone", 1);
    expect_near(modulus(made(DTRAIN_GRAPH_RING, 2)), 0, 1e-12, "pair", 2);
    double ignored;
    assert_int_equal(second_eigenvalue(made(DTRAIN_GRAPH_RING, 257), ignored), DTRAIN_ERR_LIMIT);
}

// Complex eigenvalues, a period, eigenvalues beyond one.
void odd_spectra(void **) {
    for (int32_t n = 2; n <= 20; n++) {
        for (double self : {0.5, 0.0, -0.5}) {
            std::vector<Edge> edges;
            for (int32_t r = 0; r < n; r++) edges.push_back({r, (r + 1) % n, 1 - self});
            double want = 0;
            for (int32_t k = 1; k < n; k++) {
                double angle = 2 * std::numbers::pi * k / n;
                want = std::max(want, std::hypot(self + (1 - self) * std::cos(angle),
                                                 (1 - self) * std::sin(angle)));
            }
            Graph graph(std::vector<double>(size_t(n), self), edges);
            expect_near(modulus(graph), want, 1e-7, "directed ring", n);
        }
    }
}

struct Bad {
    const char *text;
    std::function<void(std::vector<double> &, std::vector<Edge> &)> spoil;
};

// A directed ring of four, spoilt.
Status verdict(const Bad &bad, bool is_signed, bool rows_only) {
    std::vector<double> self(4, 0.5);
    std::vector<Edge> edges;
    for (int32_t r = 0; r < 4; r++) edges.push_back({r, (r + 1) % 4, 0.5});
    bad.spoil(self, edges);
    if (Status s = check_edges(4, self, edges, is_signed); s != DTRAIN_OK) return s;
    return check_mixing(Graph(self, edges), rows_only);
}

void refused(void **) {
    const Bad all[] = {
        {"from rank 4 to rank 1", [](auto &, auto &edges) { edges[0].from = 4; }},
        {"from rank -1 to rank 1", [](auto &, auto &edges) { edges[0].from = -1; }},
        {"rank 1 names itself", [](auto &, auto &edges) { edges[0].from = 1; }},
        {"from rank 1 to rank 2 is nan", [](auto &, auto &edges) { edges[1].weight = NAN; }},
        {"from rank 1 to rank 2 is inf", [](auto &, auto &edges) { edges[1].weight = INFINITY; }},
        {"from rank 1 to rank 2 is -0.5", [](auto &, auto &edges) { edges[1].weight = -0.5; }},
        {"from rank 3 to rank 3 is nan", [](auto &self, auto &) { self[3] = NAN; }},
        {"from rank 2 to rank 3 is given twice",
         [](auto &, auto &edges) {
             edges.push_back({2, 3, 0});
         }},
        {"rank 1 averages with sum to 1.00001",
         [](auto &, auto &edges) { edges[0].weight = 0.50001; }},
        {"given to rank 0's value sum to 0.75",
         [](auto &self, auto &edges) { edges[0].weight = 0.25, self[1] = 0.75; }},
        {"no path leads from rank 0 to rank 1",
         [](auto &self, auto &edges) {
             edges = {{0, 1, 0.5}, {1, 0, 0.5}, {2, 3, 0.5}, {3, 2, 0.5}};
             edges[0] = {2, 1, 0};
             edges[1] = {1, 2, 0};
             self[0] = self[1] = 1;
         }},
    };
    for (const Bad &bad : all) {
        Status s = verdict(bad, false, false);
        if (s != DTRAIN_ERR_INVALID || strstr(error_text(), bad.text) == nullptr)
            fail_msg("expected \"%s\", got %s: %s", bad.text, status_name(s), error_text());
    }
    assert_int_equal(verdict(all[9], false, true), DTRAIN_OK); // columns do not matter
    // One way only: rank 3 hears, but is not heard.
    Bad one_way = {"", [](auto &self, auto &edges) {
                       edges[3] = {1, 0, 0.5};
                       self[3] = 0.5;
                   }};
    assert_int_equal(verdict(one_way, false, true), DTRAIN_ERR_INVALID);
    assert_non_null(strstr(error_text(), "no path leads from rank 2 to rank 0"));
    Bad negative = {"", [](auto &self, auto &edges) {
                        for (int r = 0; r < 4; r++)
                            edges[size_t(r)].weight = -0.5, self[size_t(r)] = 1.5;
                    }};
    assert_int_equal(verdict(negative, false, false), DTRAIN_ERR_INVALID);
    assert_int_equal(verdict(negative, true, false), DTRAIN_OK);
    std::vector<Edge> edges = {{0, 1, 0}, {1, 0, 0}, {1, 2, 0}};
    std::vector<double> self;
    assert_int_equal(metropolis_weights(3, edges, self), DTRAIN_ERR_INVALID);
    assert_non_null(strstr(error_text(), "rank 2 receives from rank 1 but not"));
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(named_graphs), cmocka_unit_test(both_directions_are_the_same_edges),
        cmocka_unit_test(closed_forms), cmocka_unit_test(odd_spectra),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests_name("graph", tests, nullptr, nullptr);
}
