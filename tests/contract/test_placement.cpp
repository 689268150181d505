// Where tables are put: every placement gives the same table, over shared memory and over TCP.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"
#include "temporary_folder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace {

constexpr uint64_t length = 5000, keys = 700;
constexpr uint32_t dim = 3, servers = 3;
const ranks::Options tcp = {{"transports", "tcp"}}, shm = {{"transports", "shm"}};

dtrain_table_params_t make_params(uint32_t placement, bool sparse) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = sparse ? 0 : length;
    params.dim = sparse ? dim : 0;
    params.placement = placement;
    if (placement == DTRAIN_PLACE_USER)
        params.place = [](void *, uint64_t first, uint64_t, uint32_t of) {
            return uint32_t(first * 0x9e3779b97f4a7c15 >> 40) % of;
        };
    const bool by_keys = placement == DTRAIN_PLACE_RANGE || placement == DTRAIN_PLACE_USER;
    if (sparse && by_keys) params.key_count = keys;
    const bool in_blocks = placement == DTRAIN_PLACE_HASH || placement == DTRAIN_PLACE_CONSISTENT ||
                           placement == DTRAIN_PLACE_USER;
    if (!sparse && in_blocks) params.placement_block = 100;
    return params;
}

dtrain_table_t *make(dtrain_comm_t *comm, const char *name, const dtrain_table_params_t &params) {
    dtrain_table_t *table = nullptr;
    OK(dtrain_table_create(comm, name, &params, &table));
    return table;
}

dtrain_table_server_t describe(const dtrain_table_t *table, uint32_t server) {
    dtrain_table_server_t its;
    DTRAIN_INIT(&its);
    OK(dtrain_table_describe_server(table, server, &its));
    return its;
}

// Of a table that lies on one: its server.
uint32_t home_of(const dtrain_table_t *table) {
    const uint64_t first = 0;
    uint32_t server = 0;
    OK(dtrain_table_locate(table, &first, 1, &server));
    REQUIRE(describe(table, server).share == 1);
    return server;
}

std::vector<float> numbers(uint64_t count, float from) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), from);
    return values;
}

void barrier(dtrain_comm_t *comm) { OK(dtrain_barrier(comm, nullptr, nullptr)); }

// What is said of the servers is where the elements or keys are.
void check_map(const dtrain_table_t *table, bool sparse, uint32_t of = servers) {
    const uint64_t items = sparse ? keys : length;
    std::vector<uint64_t> all(items), count(of);
    std::iota(all.begin(), all.end(), 0);
    std::vector<uint32_t> owner(items);
    OK(dtrain_table_locate(table, all.data(), items, owner.data()));
    for (uint32_t server : owner) ++count.at(server);
    double share = 0;
    for (uint32_t s = 0; s < of; s++) {
        const dtrain_table_server_t its = describe(table, s);
        REQUIRE(its.elements == (sparse ? 0 : count[s]));
        if (!sparse) REQUIRE(std::fabs(its.share - double(count[s]) / length) < 1e-12);
        share += its.share;
    }
    REQUIRE(std::fabs(share - 1) < 1e-9);
    dtrain_table_server_t none;
    DTRAIN_INIT(&none);
    FAILS(DTRAIN_ERR_NOT_FOUND, dtrain_table_describe_server(table, of, &none));
}

// ADD by two workers under ASYNC, then BSP, whichever server has what.
void dense_adds_up(int rank, dtrain_comm_t *comm, uint32_t placement, uint32_t consistency) {
    dtrain_table_params_t params = make_params(placement, false);
    params.consistency = consistency;
    dtrain_table_t *table = make(comm, "dense", params);
    check_map(table, false);
    std::vector<float> g = numbers(length, 1), w(length);
    for (int round = 0; round < 3; round++) {
        OK(dtrain_table_push(table, 0, length, g.data(), nullptr, nullptr));
        if (rank == 0) OK(dtrain_table_push(table, 90, 1020, g.data(), nullptr, nullptr));
        OK(dtrain_table_clock(table, nullptr, nullptr));
    }
    barrier(comm);
    dtrain_op_params_t op;
    DTRAIN_INIT(&op);
    // Each push is one update on every server that it has a part on, BSP: each clock.
    if (consistency == DTRAIN_ASYNC) op.min_version = 6;
    OK(dtrain_table_pull(table, 0, length, w.data(), &op, nullptr));
    for (uint64_t i = 0; i < length; i++) {
        const float more = i >= 90 && i < 1110 ? g[i - 90] : 0;
        REQUIRE(w[i] == 6 * g[i] + 3 * more);
    }
    OK(dtrain_table_pull(table, 1234, 777, w.data(), nullptr, nullptr));
    REQUIRE(w[0] == 6 * g[1234] && w[776] == 6 * g[1234 + 776]);
    barrier(comm);
    OK(dtrain_table_destroy(table));
}

void sparse_adds_up(dtrain_comm_t *comm, uint32_t placement) {
    dtrain_table_t *table = make(comm, "sparse", make_params(placement, true));
    check_map(table, true);
    std::vector<uint64_t> all(keys);
    for (uint64_t i = 0; i < keys; i++) all[i] = (i * 37) % keys;
    const std::vector<float> g = numbers(keys * dim, 1);
    std::vector<float> w(keys * dim);
    OK(dtrain_table_push_rows(table, all.data(), keys, g.data(), nullptr, nullptr));
    barrier(comm);
    OK(dtrain_table_pull_rows(table, all.data(), keys, w.data(), nullptr, nullptr));
    for (uint64_t i = 0; i < keys * dim; i++) REQUIRE(w[i] == 2 * g[i]);
    uint64_t count = 0;
    OK(dtrain_table_count_rows(table, &count, nullptr, nullptr));
    REQUIRE(count == keys);
    barrier(comm);
    OK(dtrain_table_destroy(table));
}

void adds_up(const ranks::Options &options) {
    ranks::run(2, servers, options, [](int rank, dtrain_comm_t *comm) {
        for (uint32_t placement = DTRAIN_PLACE_RANGE; placement <= DTRAIN_PLACE_USER; placement++) {
            for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_BSP})
                dense_adds_up(rank, comm, placement, consistency);
            sparse_adds_up(comm, placement);
        }
    });
}
void adds_up_over_tcp(void **) { adds_up(tcp); }
void adds_up_over_shm(void **) { adds_up(shm); }

// A push of many ranges is one update of each server.
void versions_count_pushes(void **) {
    ranks::run(1, 2, shm, [](int, dtrain_comm_t *comm) {
        dtrain_table_t *table = make(comm, "w", make_params(DTRAIN_PLACE_USER, false));
        REQUIRE(describe(table, 0).ranges > 3);
        const std::vector<float> g = numbers(length, 1);
        std::vector<float> w(length);
        for (int i = 0; i < 5; i++)
            OK(dtrain_table_push(table, 0, length, g.data(), nullptr, nullptr));
        dtrain_op_params_t op;
        DTRAIN_INIT(&op);
        op.min_version = 5;
        OK(dtrain_table_pull(table, 0, length, w.data(), &op, nullptr));
        op.min_version = 6;
        op.timeout_ns = 1'000'000;
        FAILS(DTRAIN_ERR_TIMEOUT, dtrain_table_pull(table, 0, length, w.data(), &op, nullptr));
        OK(dtrain_table_destroy(table));
    });
}

// The same on all workers, also when they give tables up in another order.
void tables_take_turns(void **) {
    ranks::run(2, servers, shm, [](int rank, dtrain_comm_t *comm) {
        std::vector<dtrain_table_t *> tables;
        for (uint32_t i = 0; i < 7; i++) {
            auto params = make_params(DTRAIN_PLACE_ROUND_ROBIN, i % 2 == 1);
            tables.push_back(make(comm, "t", params));
            REQUIRE(home_of(tables.back()) == i % servers);
        }
        if (rank == 1) std::swap(tables[0], tables[6]);
        for (dtrain_table_t *table : tables) OK(dtrain_table_destroy(table));
    });
}

void greedy_by_bytes(void **) {
    ranks::run(2, servers, shm, [](int, dtrain_comm_t *comm) {
        auto greedy = [&](uint64_t elements, uint32_t rule = DTRAIN_RULE_ADD) {
            auto params = make_params(DTRAIN_PLACE_GREEDY, false);
            params.length = elements;
            params.rule = rule;
            return make(comm, "t", params);
        };
        dtrain_table_t *adam = greedy(1000, DTRAIN_RULE_ADAM); // with its state as 3000
        dtrain_table_t *large = greedy(2500);
        dtrain_table_t *small = greedy(1200), *second = greedy(1200);
        REQUIRE(home_of(adam) == 0 && home_of(large) == 1);
        REQUIRE(home_of(small) == 2 && home_of(second) == 2);
        dtrain_table_t *third = greedy(500);
        REQUIRE(home_of(third) == 2);
        barrier(comm);
        OK(dtrain_table_destroy(adam)); // its server has room again
        dtrain_table_t *next = greedy(2000);
        REQUIRE(home_of(next) == 0);
        auto params = make_params(DTRAIN_PLACE_GREEDY, false);
        params.split_bytes = length * sizeof(float) - 1;
        dtrain_table_t *split = make(comm, "split", params);
        for (uint32_t s = 0; s < servers; s++) REQUIRE(describe(split, s).elements > length / 4);
        params.split_bytes++;
        dtrain_table_t *whole = make(comm, "whole", params);
        (void)home_of(whole);
        for (dtrain_table_t *table : {large, small, second, third, next, split, whole})
            OK(dtrain_table_destroy(table));
    });
}

// The limit is each server's own.
void memory_is_counted_where_it_is(void **) {
    const ranks::Options options = {{"ps.memory", "24K"}}; // one table of 20000 bytes
    ranks::run(1, 2, options, [](int, dtrain_comm_t *comm) {
        dtrain_table_t *one = make(comm, "one", make_params(DTRAIN_PLACE_GREEDY, false));
        dtrain_table_t *two = make(comm, "two", make_params(DTRAIN_PLACE_GREEDY, false));
        REQUIRE(home_of(one) == 0 && home_of(two) == 1);
        dtrain_table_t *three = nullptr;
        const auto params = make_params(DTRAIN_PLACE_GREEDY, false);
        FAILS(DTRAIN_ERR_LIMIT, dtrain_table_create(comm, "three", &params, &three));
        OK(dtrain_table_destroy(one));
        OK(dtrain_table_destroy(two));
    });
}

// A checkpoint fits any placement on any number of servers.
void checkpoints_fit_any_placement(void **) {
    for (uint32_t placement = DTRAIN_PLACE_RANGE; placement <= DTRAIN_PLACE_USER; placement++) {
        TemporaryFolder folder;
        const ranks::Options options = {{"checkpoint.directory", folder.name}};
        std::vector<uint64_t> all(keys);
        std::iota(all.begin(), all.end(), 0);
        const std::vector<float> g = numbers(length, 1);
        for (bool saves : {true, false})
            ranks::run(1, saves ? 3 : 2, options, [&](int, dtrain_comm_t *comm) {
                const uint32_t its = saves ? placement : 1 + placement % DTRAIN_PLACE_USER;
                dtrain_table_params_t dense = make_params(its, false);
                dense.rule = DTRAIN_RULE_ADAM;
                dtrain_table_t *tables[] = {make(comm, "dense", dense),
                                            make(comm, "rows", make_params(its, true))};
                if (saves) {
                    OK(dtrain_table_push(tables[0], 0, length, g.data(), nullptr, nullptr));
                    OK(dtrain_table_push_rows(tables[1], all.data(), keys, g.data(), nullptr,
                                              nullptr));
                    OK(dtrain_checkpoint_save(tables, 2, 1, nullptr, nullptr));
                } else {
                    OK(dtrain_checkpoint_restore(tables, 2, 1, nullptr, nullptr));
                    std::vector<float> w(length), m(length), rows(keys * dim);
                    OK(dtrain_table_pull(tables[0], 0, length, w.data(), nullptr, nullptr));
                    OK(dtrain_table_pull_state(tables[0], 0, 0, length, m.data(), nullptr,
                                               nullptr));
                    OK(dtrain_table_pull_rows(tables[1], all.data(), keys, rows.data(), nullptr,
                                              nullptr));
                    for (uint64_t i = 0; i < length; i++) {
                        REQUIRE(std::fabs(w[i] + 0.01f) < 1e-4f);
                        REQUIRE(std::fabs(m[i] - 0.1f * g[i]) <= 1e-5f * g[i]);
                    }
                    for (uint64_t i = 0; i < keys * dim; i++) REQUIRE(rows[i] == g[i]);
                }
                for (dtrain_table_t *table : tables) OK(dtrain_table_destroy(table));
            });
    }
}

// Dedicated servers and workers that serve, with the best weights.
void mixed_servers(void **) {
    ranks::run(3, 1, {{"ps.serve", "yes"}}, [](int rank, dtrain_comm_t *comm) {
        uint32_t weights[4];
        OK(dtrain_server_weights(3, 1, 3, weights));
        REQUIRE(weights[0] == 4 && weights[1] == 2 && weights[3] == 2);
        for (uint32_t placement : {DTRAIN_PLACE_RANGE, DTRAIN_PLACE_HASH, DTRAIN_PLACE_USER}) {
            dtrain_table_t *table = make(comm, "w", make_params(placement, false));
            check_map(table, false, 4);
            REQUIRE(describe(table, 0).rank == -1);
            for (uint32_t s = 1; s < 4; s++) REQUIRE(describe(table, s).rank == int32_t(s) - 1);
            if (placement == DTRAIN_PLACE_RANGE) {
                REQUIRE(std::fabs(describe(table, 0).share - 0.4) < 0.01);
                REQUIRE(std::fabs(describe(table, 2).share - 0.2) < 0.01);
            }
            const std::vector<float> g = numbers(length, float(rank));
            std::vector<float> w(length);
            OK(dtrain_table_push(table, 0, length, g.data(), nullptr, nullptr));
            barrier(comm);
            OK(dtrain_table_pull(table, 0, length, w.data(), nullptr, nullptr));
            for (uint64_t i = 0; i < length; i++) REQUIRE(w[i] == 3 * float(i) + 3);
            barrier(comm);
            OK(dtrain_table_destroy(table));
        }
    });
}

// Some workers serve: those, in the order of their ranks, after the dedicated servers.
void serve_some(int dedicated, const std::vector<int> &serving,
                const std::vector<int32_t> &ranks_of, const std::vector<uint32_t> &weights) {
    auto options = [&](int rank) {
        const bool serves = std::find(serving.begin(), serving.end(), rank) != serving.end();
        return ranks::Options{{"ps.serve", serves ? "yes" : "no"}};
    };
    const auto total = uint32_t(ranks_of.size());
    ranks::run_each(3, dedicated, options, [&](int rank, dtrain_context_t *, dtrain_comm_t *comm) {
        if (dedicated > 0) {
            std::vector<uint32_t> best(total);
            OK(dtrain_server_weights(3, uint32_t(dedicated), uint32_t(serving.size()),
                                     best.data()));
            REQUIRE(best == weights);
        }
        const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
        for (uint32_t placement = DTRAIN_PLACE_RANGE; placement <= DTRAIN_PLACE_USER; placement++) {
            dtrain_table_params_t params = make_params(placement, false);
            params.rule = DTRAIN_RULE_MOMENTUM;
            dtrain_table_t *dense = make(comm, "dense", params);
            check_map(dense, false, total);
            for (uint32_t s = 0; s < total; s++) {
                REQUIRE(describe(dense, s).rank == ranks_of[s]);
                if (placement == DTRAIN_PLACE_RANGE)
                    REQUIRE(std::fabs(describe(dense, s).share - weights[s] / sum) < 0.01);
            }
            std::vector<float> w(length), g = numbers(length, 1);
            if (rank == 0) OK(dtrain_table_set(dense, 0, length, g.data(), nullptr, nullptr));
            if (rank == 0) OK(dtrain_table_set_rate(dense, 1, nullptr, nullptr));
            if (rank == 0) OK(dtrain_table_set_ready(dense, nullptr, nullptr));
            OK(dtrain_table_wait_ready(dense, nullptr, nullptr));
            OK(dtrain_table_pull(dense, 0, length, w.data(), nullptr, nullptr));
            REQUIRE(w == g);
            barrier(comm);
            if (rank == 1)
                OK(dtrain_table_push_pull(dense, 0, length, g.data(), w.data(), nullptr, nullptr));
            else
                std::fill(w.begin(), w.end(), 0.0F);
            REQUIRE(w == std::vector<float>(length, 0));
            barrier(comm);
            OK(dtrain_table_pull_state(dense, 0, 0, length, w.data(), nullptr, nullptr));
            REQUIRE(w == g); // v = g
            barrier(comm);
            if (rank == 2) OK(dtrain_table_set_state(dense, 0, 10, 100, &w[0], nullptr, nullptr));
            barrier(comm);
            OK(dtrain_table_pull_state(dense, 0, 10, 100, &w[500], nullptr, nullptr));
            for (size_t i = 0; i < 100; i++) REQUIRE(w[500 + i] == g[i]);
            barrier(comm);
            OK(dtrain_table_destroy(dense));

            dtrain_table_t *rows = make(comm, "rows", make_params(placement, true));
            check_map(rows, true, total);
            std::vector<uint64_t> all(keys);
            std::iota(all.begin(), all.end(), 0);
            w.resize(keys * dim), g.resize(keys * dim);
            OK(dtrain_table_push_rows(rows, all.data(), keys, g.data(), nullptr, nullptr));
            OK(dtrain_table_clock(rows, nullptr, nullptr));
            barrier(comm);
            OK(dtrain_table_pull_rows(rows, all.data(), keys, w.data(), nullptr, nullptr));
            for (size_t i = 0; i < w.size(); i++) REQUIRE(w[i] == 3 * g[i]);
            barrier(comm);
            if (rank == 0) {
                OK(dtrain_table_set_rows(rows, all.data(), keys, g.data(), nullptr, nullptr));
                OK(dtrain_table_push_pull_rows(rows, all.data(), keys, g.data(), w.data(), nullptr,
                                               nullptr));
                for (size_t i = 0; i < w.size(); i++) REQUIRE(w[i] == 2 * g[i]);
                OK(dtrain_table_erase_rows(rows, all.data(), 300, nullptr, nullptr));
            }
            barrier(comm);
            uint64_t count = 0;
            OK(dtrain_table_count_rows(rows, &count, nullptr, nullptr));
            REQUIRE(count == keys - 300);
            barrier(comm);
            OK(dtrain_table_destroy(rows));
        }
    });
}
void some_workers_serve_beside_servers(void **) {
    serve_some(1, {0, 2}, {-1, 0, 2}, {3, 2, 2});
    serve_some(2, {1}, {-1, -1, 1}, {2, 2, 1});
}
void some_workers_serve_alone(void **) {
    serve_some(0, {2}, {2}, {1});
    serve_some(0, {0, 1}, {0, 1}, {1, 1});
}

void wrong_parameters(void **) {
    ranks::run(1, 2, shm, [](int, dtrain_comm_t *comm) {
        auto refuses = [&](const char *word, auto &&change, uint32_t placement = 0) {
            dtrain_table_params_t params = make_params(placement, false);
            change(params);
            dtrain_table_t *table = nullptr;
            FAILS(DTRAIN_ERR_INVALID, dtrain_table_create(comm, "w", &params, &table));
            const std::string text = ranks::last_error();
            if (text.find(word) == std::string::npos) fail_msg("%s: %s", word, text.c_str());
        };
        using Params = dtrain_table_params_t;
        static const uint32_t some[] = {1, 1, 1}, zeros[] = {0, 0};
        refuses(
            "placement", [](Params &) {}, 7);
        refuses(
            "placement_block", [](Params &p) { p.placement_block = 9; }, DTRAIN_PLACE_RANGE);
        refuses(
            "virtual_nodes", [](Params &p) { p.virtual_nodes = 9; }, DTRAIN_PLACE_HASH);
        refuses(
            "key_count", [](Params &p) { p.key_count = 9; }, DTRAIN_PLACE_RANGE);
        refuses(
            "split_bytes", [](Params &p) { p.split_bytes = 9; }, DTRAIN_PLACE_RANGE);
        refuses(
            "place is NULL", [](Params &p) { p.place = nullptr; }, DTRAIN_PLACE_USER);
        refuses(
            "place is not NULL",
            [](Params &p) { p.place = [](void *, uint64_t, uint64_t, uint32_t) { return 0u; }; },
            DTRAIN_PLACE_HASH);
        refuses(
            "3 weights, but the job has 2 servers",
            [](Params &p) {
                p.weights = some;
                p.weight_count = 3;
            },
            DTRAIN_PLACE_RANGE);
        refuses(
            "all weights are 0",
            [](Params &p) {
                p.weights = zeros;
                p.weight_count = 2;
            },
            DTRAIN_PLACE_RANGE);
        refuses(
            "weight_count is 2, but weights is NULL", [](Params &p) { p.weight_count = 2; },
            DTRAIN_PLACE_RANGE);
        refuses(
            "weights cannot be used with placement USER",
            [](Params &p) {
                p.weights = some;
                p.weight_count = 2;
            },
            DTRAIN_PLACE_USER);
        refuses(
            "place() puts 0 to 0 + 100 on server 2 of 2",
            [](Params &p) { p.place = [](void *, uint64_t, uint64_t, uint32_t of) { return of; }; },
            DTRAIN_PLACE_USER);
        uint32_t weights[2];
        FAILS(DTRAIN_ERR_INVALID, dtrain_server_weights(0, 1, 0, weights));
        FAILS(DTRAIN_ERR_INVALID, dtrain_server_weights(2, 1, 3, weights));
        FAILS(DTRAIN_ERR_INVALID, dtrain_server_weights(2, 0, 0, weights));
        FAILS(DTRAIN_ERR_INVALID, dtrain_server_weights(2, 1, 1, nullptr));
        dtrain_table_t *table = make(comm, "w", make_params(0, false));
        const uint64_t beyond = length;
        uint32_t server = 0;
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_locate(table, &beyond, 1, &server));
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_locate(table, nullptr, 1, &server));
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_describe_server(table, 0, nullptr));
        OK(dtrain_table_destroy(table));
    });
}

// Workers that do not agree are told so, all of them, and the servers live on.
void workers_that_disagree(void **) {
    ranks::run(2, 2, shm, [](int rank, dtrain_comm_t *comm) {
        auto disagree = [&](uint32_t placement, auto &&change) {
            dtrain_table_params_t params = make_params(placement, false);
            if (rank == 1) change(params);
            dtrain_table_t *table = nullptr;
            FAILS(DTRAIN_ERR_MISMATCH, dtrain_table_create(comm, "w", &params, &table));
            REQUIRE(ranks::last_error().find("placement") != std::string::npos);
        };
        using Params = dtrain_table_params_t;
        static const uint32_t two_to_one[] = {2, 1};
        disagree(DTRAIN_PLACE_USER, [](Params &p) {
            p.place = [](void *, uint64_t first, uint64_t, uint32_t) {
                return uint32_t(first == 4900); // one block elsewhere
            };
        });
        disagree(DTRAIN_PLACE_ROUND_ROBIN, [](Params &p) { p.placement = DTRAIN_PLACE_RANGE; });
        disagree(DTRAIN_PLACE_RANGE, [](Params &p) { p.placement = DTRAIN_PLACE_GREEDY; });
        disagree(DTRAIN_PLACE_CONSISTENT, [](Params &p) { p.virtual_nodes = 7; });
        disagree(DTRAIN_PLACE_RANGE, [](Params &p) {
            p.weights = two_to_one;
            p.weight_count = 2;
        });
        dtrain_table_t *table = make(comm, "w", make_params(0, false));
        OK(dtrain_table_destroy(table));
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(adds_up_over_tcp),
        cmocka_unit_test(adds_up_over_shm),
        cmocka_unit_test(versions_count_pushes),
        cmocka_unit_test(tables_take_turns),
        cmocka_unit_test(greedy_by_bytes),
        cmocka_unit_test(memory_is_counted_where_it_is),
        cmocka_unit_test(checkpoints_fit_any_placement),
        cmocka_unit_test(mixed_servers),
        cmocka_unit_test(some_workers_serve_beside_servers),
        cmocka_unit_test(some_workers_serve_alone),
        cmocka_unit_test(wrong_parameters),
        cmocka_unit_test(workers_that_disagree),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
