// Averages bring values together at the rate that the spectral gap tells, and keep their mean.
// SPDX-License-Identifier: Apache-2.0
#include "contract/graph_case.h"

namespace {

using graphs::Handle;
using graphs::Matrix;

constexpr uint64_t seed = 20263;

// The root of the mean square of the distances to the mean, over all ranks and elements.
double distance(dtrain_comm_t *comm, const std::vector<double> &x,
                const std::vector<double> &mean) {
    double sum = 0;
    for (size_t i = 0; i < x.size(); i++) sum += (x[i] - mean[i]) * (x[i] - mean[i]);
    OK(dtrain_allreduce(comm, &sum, &sum, 1, DTRAIN_F64, DTRAIN_AVG, nullptr, nullptr));
    return std::sqrt(sum / double(x.size()));
}

std::vector<double> mean_of(dtrain_comm_t *comm, const std::vector<double> &x) {
    std::vector<double> mean(x.size());
    OK(dtrain_allreduce(comm, x.data(), mean.data(), x.size(), DTRAIN_F64, DTRAIN_AVG, nullptr,
                        nullptr));
    return mean;
}

// Averages until the faster parts have died out, then measures the slowest over as many steps as
// leave it well above the rounding.
void mix(dtrain_comm_t *comm, dtrain_graph_t *graph, const char *name, int size) {
    int rank = dtrain_comm_rank(comm);
    double gap = -1;
    OK(dtrain_graph_spectral_gap(graph, &gap));
    std::mt19937_64 random(seed + uint64_t(rank));
    std::normal_distribution<double> normal;
    std::vector<double> x(500);
    for (double &value : x) value = normal(random);
    const std::vector<double> mean = mean_of(comm, x);
    double rate = 1 - gap, start = distance(comm, x, mean), first = 0, last = start;
    int steps = 0, warm = 0;
    auto step = [&] {
        OK(dtrain_neighbor_average(graph, x.data(), x.data(), x.size(), DTRAIN_F64, nullptr,
                                   nullptr));
        last = distance(comm, x, mean);
    };
    while (last > 1e-5 * start && warm < 400) step(), warm++;
    first = last;
    while (last > 1e-11 * start && steps < 400) step(), steps++;
    std::vector<double> kept = mean_of(comm, x);
    for (size_t i = 0; i < x.size(); i++) REQUIRE(std::fabs(kept[i] - mean[i]) < 1e-12);
    if (rate < 1e-6) { // at once
        REQUIRE(warm == 1 && last < 1e-12 * start);
        if (rank == 0) std::printf("%-12s %3d ranks: gap %.4f, mixed at once\n", name, size, gap);
        return;
    }
    double measured = std::pow(last / first, 1.0 / steps);
    if (rank == 0)
        std::printf("%-12s %3d ranks: gap %.4f, rate %.4f, measured %.4f over %d steps\n", name,
                    size, gap, rate, measured, steps);
    REQUIRE(std::fabs(measured - rate) < 0.01 * rate);
}

// A matrix that is doubly stochastic but not symmetric: a mean of permutations, one of them a ring.
Matrix permutations(int size) {
    std::mt19937_64 random(seed);
    auto n = size_t(size);
    Matrix w(n, std::vector<double>(n));
    std::vector<size_t> order(n);
    for (size_t k = 0; k < 4; k++) {
        for (size_t i = 0; i < n; i++) order[i] = (i + 1) % n;
        if (k == 1)
            for (size_t i = 0; i < n; i++) order[i] = i;
        if (k > 1) std::shuffle(order.begin(), order.end(), random);
        for (size_t i = 0; i < n; i++) w[i][order[i]] += 0.25;
    }
    return w;
}

void named(void **) {
    static constexpr const char *names[] = {"", "ring", "grid", "exponential", "full"};
    for (int size : {4, 7, 12, 16})
        ranks::run(size, {}, [&](int, dtrain_comm_t *comm) {
            for (uint32_t kind : graphs::named) {
                Handle handle;
                OK(graphs::create(comm, kind, &handle.graph));
                mix(comm, handle.graph, names[kind], size);
            }
        });
}

void custom(void **) {
    for (int size : {6, 11})
        ranks::run(size, {}, [&](int, dtrain_comm_t *comm) {
            Handle handle;
            OK(graphs::create(comm, permutations(size), &handle.graph));
            mix(comm, handle.graph, "permutations", size);
        });
}

// Rows alone make the values meet, at another place than the mean.
void rows_only(void **) {
    ranks::run(5, {}, [](int rank, dtrain_comm_t *comm) {
        std::mt19937_64 random(seed);
        Handle handle;
        OK(graphs::create(comm, graphs::random_matrix(random, 5), &handle.graph));
        double x = rank, all[5];
        for (int i = 0; i < 200; i++)
            OK(dtrain_neighbor_average(handle.graph, &x, &x, 1, DTRAIN_F64, nullptr, nullptr));
        OK(dtrain_allgather(comm, &x, all, 1, DTRAIN_F64, nullptr, nullptr));
        for (double y : all) REQUIRE(std::fabs(y - x) < 1e-9);
        REQUIRE(std::fabs(x - 2) > 1e-3);
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(named), cmocka_unit_test(custom),
                                cmocka_unit_test(rows_only)};
    return cmocka_run_group_tests_name("mixing", tests, nullptr, nullptr);
}
