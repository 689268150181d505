// Sparse tables end to end, against a map in doubles: with dedicated servers and with none, inside
// a host and over TCP.
// SPDX-License-Identifier: Apache-2.0
#include "contract/collective_case.h"
#include "contract/ranks.h"

#include <array>
#include <cmath>
#include <map>
#include <random>

namespace {

constexpr uint32_t dim = 17;

uint64_t scattered(uint64_t number) { return number * 0x9e3779b97f4a7c15; } // 0 among them

std::vector<uint8_t> bytes_of(uint32_t dtype, uint64_t count, int value) {
    std::vector<uint8_t> bytes(count * dtrain_dtype_size(dtype));
    for (uint64_t i = 0; i < count; i++) cases::write(bytes.data(), i, dtype, value);
    return bytes;
}

dtrain_table_params_t sparse_params(uint32_t consistency, uint32_t rule = DTRAIN_RULE_ADD) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F64;
    params.dim = dim;
    params.rule = rule;
    params.consistency = consistency;
    return params;
}

// One element by the formulas of docs/PARAMETER_SERVER.md, with the default hyper-parameters.
struct Element {
    double w = 0, a = 0, b = 0, steps = 0;

    void update(uint32_t rule, double g) {
        steps++;
        switch (rule) {
        case DTRAIN_RULE_ADD: w += g; break;
        case DTRAIN_RULE_ASSIGN: w = g; break;
        case DTRAIN_RULE_SGD: w -= 0.01 * g; break;
        case DTRAIN_RULE_MOMENTUM:
            a = 0.9 * a + g;
            w -= 0.01 * a;
            break;
        case DTRAIN_RULE_ADAGRAD:
            a += g * g;
            w -= 0.01 * g / (std::sqrt(a) + 1e-8);
            break;
        default:
            a = 0.9 * a + 0.1 * g;
            b = 0.999 * b + 0.001 * g * g;
            w -= 0.01 * (a / (1 - std::pow(0.9, steps))) /
                 (std::sqrt(b / (1 - std::pow(0.999, steps))) + 1e-8);
        }
    }
};

// One worker's pushes of unsorted keys that repeat, in several requests per server.
void follows_the_formulas(int servers, const ranks::Options &options) {
    ranks::run(1, servers, options, [](int, dtrain_comm_t *comm) {
        for (uint32_t rule = DTRAIN_RULE_ADD; rule <= DTRAIN_RULE_ADAM; rule++) {
            std::mt19937_64 random(rule);
            dtrain_table_params_t params = sparse_params(DTRAIN_ASYNC, rule);
            dtrain_table_t *table = nullptr;
            OK(dtrain_table_create(comm, "rows", &params, &table));
            std::map<uint64_t, std::array<Element, dim>> model;
            for (int round = 0; round < 6; round++) {
                std::vector<uint64_t> keys(6000);
                std::vector<double> g(keys.size() * dim), w(g.size());
                std::map<uint64_t, std::array<double, dim>> sums;
                for (size_t i = 0; i < keys.size(); i++) {
                    keys[i] = scattered(random() % 9000);
                    for (uint32_t c = 0; c < dim; c++) {
                        g[i * dim + c] = double(random() % 2001) / 1000 - 1;
                        double &sum = sums[keys[i]][c];
                        sum = g[i * dim + c] + (rule == DTRAIN_RULE_ASSIGN ? 0 : sum);
                    }
                }
                OK(dtrain_table_push_rows(table, keys.data(), keys.size(), g.data(), nullptr,
                                          nullptr));
                for (const auto &[key, sum] : sums)
                    for (uint32_t c = 0; c < dim; c++) model[key][c].update(rule, sum[c]);
                for (uint64_t &key : keys) key = scattered(random() % 10000); // new ones, too
                OK(dtrain_table_pull_rows(table, keys.data(), keys.size(), w.data(), nullptr,
                                          nullptr));
                for (size_t i = 0; i < w.size(); i++) {
                    const auto row = model.find(keys[i / dim]);
                    const double due = row == model.end() ? 0 : row->second[i % dim].w;
                    REQUIRE(std::fabs(w[i] - due) <= 1e-9 * (1 + std::fabs(due)));
                }
            }
            OK(dtrain_table_destroy(table));
        }
    });
}
void rules_with_servers(void **) {
    follows_the_formulas(1, {});
    follows_the_formulas(3, {});
}
void rules_without_servers(void **) { follows_the_formulas(0, {}); }
void rules_over_tcp(void **) { follows_the_formulas(2, {{"transports", "tcp"}}); }

// Every push of every worker counts once.
void adds_up(int workers, int servers, const ranks::Options &options) {
    ranks::run(workers, servers, options, [workers](int rank, dtrain_comm_t *comm) {
        for (uint32_t dtype = DTRAIN_F32; dtype <= DTRAIN_U64; dtype++) {
            dtrain_table_params_t params = sparse_params(DTRAIN_ASYNC);
            params.dtype = dtype;
            params.initial = 1;
            dtrain_table_t *table = nullptr;
            OK(dtrain_table_create(comm, "rows", &params, &table));
            const uint64_t size = dtrain_dtype_size(dtype);
            const std::vector<uint64_t> keys = {7, UINT64_MAX, 0, 7, uint64_t(rank) + 100};
            const auto ones = bytes_of(dtype, keys.size() * dim, 1);
            for (int i = 0; i < 3; i++)
                OK(dtrain_table_push_rows(table, keys.data(), keys.size(), ones.data(), nullptr,
                                          nullptr));
            OK(dtrain_barrier(comm, nullptr, nullptr));
            const std::vector<uint64_t> asked = {100, 0, 7, 5, 7, UINT64_MAX};
            const int due[] = {4, 1 + 3 * workers, 1 + 6 * workers,
                               1, 1 + 6 * workers, 1 + 3 * workers};
            std::vector<char> w(asked.size() * dim * size);
            OK(dtrain_table_pull_rows(table, asked.data(), asked.size(), w.data(), nullptr,
                                      nullptr));
            for (size_t i = 0; i < asked.size(); i++) {
                const auto row = bytes_of(dtype, dim, due[i]);
                REQUIRE(std::memcmp(&w[i * dim * size], row.data(), row.size()) == 0);
            }
            OK(dtrain_table_destroy(table));
        }
    });
}
void all_types_with_servers(void **) { adds_up(3, 2, {}); }
void all_types_without_servers(void **) { adds_up(3, 0, {}); }
void all_types_over_tcp(void **) { adds_up(2, 2, {{"transports", "tcp"}}); }

// A pull at clock c sees all updates before it and no other.
void bsp(int workers, int servers) {
    ranks::run(workers, servers, {}, [workers](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params = sparse_params(DTRAIN_BSP);
        params.aggregate = DTRAIN_AVG;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "rows", &params, &table));
        std::vector<uint64_t> keys(5000);
        for (uint64_t i = 0; i < keys.size(); i++) keys[i] = scattered(i);
        const std::vector<double> g(keys.size() * dim, double(rank * workers));
        std::vector<double> w(g.size());
        for (int clock = 0; clock < 5; clock++) {
            OK(dtrain_table_pull_rows(table, keys.data(), keys.size(), w.data(), nullptr, nullptr));
            for (double x : w) REQUIRE(x == double(clock * workers * (workers - 1) / 2));
            OK(dtrain_table_push_rows(table, keys.data(), keys.size(), g.data(), nullptr, nullptr));
            OK(dtrain_table_clock(table, nullptr, nullptr));
        }
        OK(dtrain_table_destroy(table));
    });
}
void bsp_sees_all(void **) {
    bsp(3, 2);
    bsp(2, 0);
}

// With staleness s a pull at clock c sees at least all updates of clocks before c - s.
void ssp_is_bounded(void **) {
    constexpr int workers = 3, clocks = 20, staleness = 2;
    ranks::run(workers, 1, {}, [](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params = sparse_params(DTRAIN_SSP);
        params.dim = 1;
        params.staleness = staleness;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "clocks", &params, &table));
        const uint64_t all[workers] = {0, 1, 2}, mine = uint64_t(rank);
        const double one = 1;
        double seen[workers];
        for (int clock = 0; clock < clocks; clock++) {
            OK(dtrain_table_pull_rows(table, all, workers, seen, nullptr, nullptr));
            for (double x : seen) REQUIRE(x >= double(clock - staleness));
            OK(dtrain_table_push_rows(table, &mine, 1, &one, nullptr, nullptr));
            OK(dtrain_table_clock(table, nullptr, nullptr));
        }
        OK(dtrain_table_destroy(table));
    });
}

// The same seed gives the same rows, however many servers there are.
void rows_begin_alike(void **) {
    std::vector<float> first;
    std::vector<uint64_t> keys(2000);
    for (uint64_t i = 0; i < keys.size(); i++) keys[i] = scattered(i);
    for (int servers : {1, 3, 0}) {
        std::vector<float> w(keys.size() * dim);
        ranks::run(1, servers, {}, [&](int, dtrain_comm_t *comm) {
            dtrain_table_params_t params = sparse_params(DTRAIN_ASYNC);
            params.dtype = DTRAIN_F32;
            params.distribution = DTRAIN_INITIAL_NORMAL;
            params.spread = 0.5;
            params.seed = 11;
            dtrain_table_t *table = nullptr;
            OK(dtrain_table_create(comm, "rows", &params, &table));
            OK(dtrain_table_pull_rows(table, keys.data(), keys.size(), w.data(), nullptr, nullptr));
            OK(dtrain_table_destroy(table));
        });
        if (first.empty()) first = w;
        REQUIRE(w == first);
        double squares = 0;
        for (float x : w) squares += double(x) * x;
        REQUIRE(std::fabs(squares / double(w.size()) - 0.25) < 0.01);
    }
}

// The others wait until every server knows that the chief has set what it wanted.
void the_chief_initializes(void **) {
    for (int servers : {2, 0})
        ranks::run(3, servers, {}, [](int rank, dtrain_comm_t *comm) {
            dtrain_table_params_t params = sparse_params(DTRAIN_ASYNC);
            dtrain_table_t *table = nullptr;
            OK(dtrain_table_create(comm, "rows", &params, &table));
            dtrain_op_params_t soon;
            DTRAIN_INIT(&soon);
            soon.timeout_ns = 20'000'000;
            FAILS(DTRAIN_ERR_TIMEOUT, dtrain_table_wait_ready(table, &soon, nullptr));
            OK(dtrain_barrier(comm, nullptr, nullptr));
            const uint64_t key = 7;
            std::vector<double> row(dim, 3);
            if (rank == 0) {
                OK(dtrain_table_set_rows(table, &key, 1, row.data(), nullptr, nullptr));
                OK(dtrain_table_set_ready(table, nullptr, nullptr));
            }
            OK(dtrain_table_wait_ready(table, nullptr, nullptr));
            OK(dtrain_table_pull_rows(table, &key, 1, row.data(), nullptr, nullptr));
            for (double x : row) REQUIRE(x == 3);
            OK(dtrain_barrier(comm, nullptr, nullptr));
            OK(dtrain_table_destroy(table));
        });
}

void wrong_use_is_an_error(void **) {
    ranks::run(1, 1, {}, [](int, dtrain_comm_t *comm) {
        dtrain_table_params_t params = sparse_params(DTRAIN_ASYNC), dense = params;
        dense.dim = 0;
        dense.length = 10;
        dtrain_table_t *rows = nullptr, *array = nullptr;
        OK(dtrain_table_create(comm, "rows", &params, &rows));
        OK(dtrain_table_create(comm, "array", &dense, &array));
        const uint64_t key = 1;
        double w[dim] = {};
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_push_rows(array, &key, 1, w, nullptr, nullptr));
        REQUIRE(ranks::last_error().find("dense") != std::string::npos);
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_pull_rows(array, &key, 1, w, nullptr, nullptr));
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_pull(rows, 0, 0, w, nullptr, nullptr));
        REQUIRE(ranks::last_error().find("sparse") != std::string::npos);
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_push_rows(rows, nullptr, 1, w, nullptr, nullptr));
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_pull_rows(rows, &key, 1, nullptr, nullptr, nullptr));
        FAILS(DTRAIN_ERR_INVALID,
              dtrain_table_pull_rows(rows, &key, UINT64_MAX / 8, w, nullptr, nullptr));
        OK(dtrain_table_push_rows(rows, nullptr, 0, nullptr, nullptr, nullptr));
        OK(dtrain_table_pull_rows(rows, nullptr, 0, nullptr, nullptr, nullptr));
        dtrain_table_t *none = nullptr;
        auto refused = [&](const char *field) {
            FAILS(DTRAIN_ERR_INVALID, dtrain_table_create(comm, "no", &params, &none));
            REQUIRE(ranks::last_error().find(field) != std::string::npos);
            params = sparse_params(DTRAIN_ASYNC);
        };
        params.length = 1;
        refused("length");
        params.dim = UINT32_MAX;
        refused("dim");
        params.distribution = 4;
        refused("distribution");
        params.dtype = DTRAIN_I32;
        params.distribution = DTRAIN_INITIAL_NORMAL;
        refused("distribution");
        params.spread = 1; // of a constant
        refused("spread");
        OK(dtrain_table_destroy(rows));
        OK(dtrain_table_destroy(array));
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(rules_with_servers),
        cmocka_unit_test(rules_without_servers),
        cmocka_unit_test(rules_over_tcp),
        cmocka_unit_test(all_types_with_servers),
        cmocka_unit_test(all_types_without_servers),
        cmocka_unit_test(all_types_over_tcp),
        cmocka_unit_test(bsp_sees_all),
        cmocka_unit_test(ssp_is_bounded),
        cmocka_unit_test(rows_begin_alike),
        cmocka_unit_test(the_chief_initializes),
        cmocka_unit_test(wrong_use_is_an_error),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
