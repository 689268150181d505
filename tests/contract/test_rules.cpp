// What the API says of update rules: rows over several servers, state, rates, refusals.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

namespace {

dtrain_table_params_t table_params(uint32_t rule, uint64_t length) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = length;
    params.rule = rule;
    return params;
}

using Job = std::function<void(int rank, dtrain_comm_t *comm)>;

// With dedicated servers, and without.
void everywhere(const Job &job) {
    ranks::run(2, 3, {}, job);
    ranks::run(3, 0, {}, job);
}

float pulled(dtrain_table_t *table, uint64_t element) {
    float value = 0;
    OK(dtrain_table_pull(table, element, 1, &value, nullptr, nullptr));
    return value;
}

// Rows that no server's part would end at, and one that is many requests long.
void rows_stay_together(void **) {
    constexpr uint64_t row = 7, rows = 10;
    everywhere([](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params = table_params(DTRAIN_RULE_SGD, row * rows);
        params.row_length = row;
        params.clip_norm = 1;
        params.learning_rate = 1;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "rows", &params, &table));
        std::vector<float> g(row * rows, 2), w(row * rows);
        if (rank == 0) OK(dtrain_table_push(table, 0, row * rows, g.data(), nullptr, nullptr));
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_table_pull(table, 0, row * rows, w.data(), nullptr, nullptr));
        for (float x : w) REQUIRE(std::fabs(x + 1 / std::sqrt(float(row))) < 1e-6f);
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_push(table, 1, row, g.data(), nullptr, nullptr));
        REQUIRE(ranks::last_error().find("whole rows of 7") != std::string::npos);
        OK(dtrain_table_destroy(table));
    });
}

void a_long_row_is_exact_under_bsp(void **) {
    constexpr uint64_t length = 300007;
    everywhere([](int, dtrain_comm_t *comm) {
        dtrain_table_params_t params = table_params(DTRAIN_RULE_SGD, length);
        params.clip_norm = 1;
        params.learning_rate = 1;
        dtrain_table_t *table = nullptr;
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_create(comm, "long", &params, &table));
        REQUIRE(ranks::last_error().find("row_length") != std::string::npos);
        params.consistency = DTRAIN_BSP;
        params.aggregate = DTRAIN_AVG;
        OK(dtrain_table_create(comm, "long", &params, &table));
        std::vector<float> g(length, 5), w(length);
        OK(dtrain_table_push_pull(table, 0, length, g.data(), w.data(), nullptr, nullptr));
        for (float x : w) REQUIRE(std::fabs(x * std::sqrt(float(length)) + 1) < 1e-5f);
        OK(dtrain_table_destroy(table));
    });
}

void state_moves_from_table_to_table(void **) {
    constexpr uint64_t length = 200003; // several requests, also of the steps
    everywhere([](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params = table_params(DTRAIN_RULE_ADAM, length);
        dtrain_table_t *from = nullptr, *to = nullptr;
        OK(dtrain_table_create(comm, "from", &params, &from));
        OK(dtrain_table_create(comm, "to", &params, &to));
        std::vector<float> g(length), w(length), other(length);
        for (uint64_t i = 0; i < length; i++) g[i] = float(i % 100) - 50;
        if (rank == 0) {
            OK(dtrain_table_push(from, 0, length, g.data(), nullptr, nullptr));
            OK(dtrain_table_push(from, 5, length / 2, g.data(), nullptr, nullptr));
            OK(dtrain_table_pull(from, 0, length, w.data(), nullptr, nullptr));
            OK(dtrain_table_set(to, 0, length, w.data(), nullptr, nullptr));
            const char *name = nullptr;
            uint32_t dtype = 0;
            uint64_t count = 0;
            for (uint32_t i = 0; i < 3; i++) {
                OK(dtrain_table_describe_state(from, i, &name, &dtype, &count));
                REQUIRE(count == length);
                REQUIRE(dtype == (i < 2 ? DTRAIN_F32 : DTRAIN_U64));
                std::vector<uint64_t> room(length);
                OK(dtrain_table_pull_state(from, i, 0, length, room.data(), nullptr, nullptr));
                if (i == 2) REQUIRE(room[0] == 1 && room[5] == 2 && room[length - 1] == 1);
                OK(dtrain_table_set_state(to, i, 0, length, room.data(), nullptr, nullptr));
            }
            REQUIRE(std::strcmp(name, "steps") == 0);
            FAILS(DTRAIN_ERR_NOT_FOUND,
                  dtrain_table_describe_state(from, 3, &name, &dtype, &count));
            FAILS(DTRAIN_ERR_NOT_FOUND,
                  dtrain_table_pull_state(from, 3, 0, 1, w.data(), nullptr, nullptr));
            FAILS(DTRAIN_ERR_INVALID,
                  dtrain_table_pull_state(from, 0, length, 1, w.data(), nullptr, nullptr));
            FAILS(DTRAIN_ERR_INVALID,
                  dtrain_table_set_state(from, 0, 0, 1, nullptr, nullptr, nullptr));
            uint64_t absurd = UINT64_MAX;
            FAILS(DTRAIN_ERR_INVALID,
                  dtrain_table_set_state(to, 2, 0, 1, &absurd, nullptr, nullptr));
            OK(dtrain_table_push_pull(from, 0, length, g.data(), w.data(), nullptr, nullptr));
            OK(dtrain_table_push_pull(to, 0, length, g.data(), other.data(), nullptr, nullptr));
            REQUIRE(std::memcmp(w.data(), other.data(), length * sizeof(float)) == 0);
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_table_destroy(from));
        OK(dtrain_table_destroy(to));
    });
}

// Under BSP a rate begins with the clock in which it was said, whoever is ahead of whom.
void rates_belong_to_clocks(void **) {
    everywhere([](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params = table_params(DTRAIN_RULE_SGD, 100);
        params.consistency = DTRAIN_BSP;
        params.aggregate = DTRAIN_AVG;
        params.learning_rate = 1;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "w", &params, &table));
        std::vector<float> g(100, 1);
        float due = 0;
        for (int clock = 0; clock < 20; clock++) {
            // Nobody waits for anybody here but every fourth clock.
            if (clock % 4 == 0) REQUIRE(pulled(table, 99) == due);
            float rate = float(1 << clock % 5) / 4;
            if (rank == 0) OK(dtrain_table_set_rate(table, rate, nullptr, nullptr));
            OK(dtrain_table_push(table, 0, 100, g.data(), nullptr, nullptr));
            OK(dtrain_table_clock(table, nullptr, nullptr));
            due -= rate;
        }
        REQUIRE(pulled(table, 0) == due);
        OK(dtrain_table_destroy(table));
    });
}

void a_rate_holds_for_later_pushes(void **) {
    everywhere([](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params = table_params(DTRAIN_RULE_SGD, 100);
        params.learning_rate = 1;
        dtrain_table_t *table = nullptr, *sum = nullptr;
        OK(dtrain_table_create(comm, "w", &params, &table));
        std::vector<float> g(100, 1);
        if (rank == 0) {
            OK(dtrain_table_push(table, 0, 100, g.data(), nullptr, nullptr));
            OK(dtrain_table_set_rate(table, 0.25, nullptr, nullptr));
            OK(dtrain_table_push(table, 0, 100, g.data(), nullptr, nullptr));
            REQUIRE(pulled(table, 50) == -1.25f);
        }
        constexpr double infinity = std::numeric_limits<double>::infinity();
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_set_rate(table, infinity, nullptr, nullptr));
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_set_rate(nullptr, 1, nullptr, nullptr));
        params = table_params(DTRAIN_RULE_ADD, 10);
        OK(dtrain_table_create(comm, "sum", &params, &sum));
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_set_rate(sum, 1, nullptr, nullptr));
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_table_destroy(table));
        OK(dtrain_table_destroy(sum));
    });
}

// Numbers that are given as 0 are no defaults, of tables and of their segments.
void zeros_are_taken(void **) {
    ranks::run(1, 1, {}, [](int, dtrain_comm_t *comm) {
        const float g[4] = {1, 1, 1, 1};
        auto after_two_pushes = [&](const dtrain_table_params_t &params) {
            dtrain_table_t *table = nullptr;
            OK(dtrain_table_create(comm, "w", &params, &table));
            for (int i = 0; i < 2; i++) OK(dtrain_table_push(table, 0, 4, g, nullptr, nullptr));
            const std::vector<float> found = {pulled(table, 0), pulled(table, 2)};
            OK(dtrain_table_destroy(table));
            return found;
        };
        dtrain_table_params_t params = table_params(DTRAIN_RULE_SGD, 4);
        params.learning_rate = 0;
        params.given = DTRAIN_GIVEN_LEARNING_RATE;
        REQUIRE(after_two_pushes(params)[0] == 0);
        params = table_params(DTRAIN_RULE_MOMENTUM, 4);
        params.learning_rate = 1;
        params.given = DTRAIN_GIVEN_MOMENTUM;
        REQUIRE(after_two_pushes(params)[0] == -2); // of 0.9: -2.9
        dtrain_segment_t segments[2];
        for (dtrain_segment_t &segment : segments) {
            DTRAIN_INIT(&segment);
            segment.rule = DTRAIN_RULE_MOMENTUM;
            segment.count = 2;
        }
        segments[0].given = DTRAIN_GIVEN_LEARNING_RATE;
        segments[1].first = 2;
        segments[1].learning_rate = 1;
        segments[1].given = DTRAIN_GIVEN_MOMENTUM;
        params = table_params(0, 4);
        params.learning_rate = 0;
        params.row_length = 4;
        params.segments = segments;
        params.segment_count = 2;
        REQUIRE((after_two_pushes(params) == std::vector<float>{0, -2}));
        params.given = DTRAIN_GIVEN_LEARNING_RATE; // a factor of both
        REQUIRE((after_two_pushes(params) == std::vector<float>{0, 0}));
    });
}

// A push with a NaN or an infinity is taken, refused by name, or dropped and counted.
void what_is_not_finite(void **) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (bool sparse : {false, true})
        for (uint32_t wire : {uint32_t{0}, uint32_t{DTRAIN_BF16}})
            for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_BSP})
                ranks::run(2, 1, {}, [&](int rank, dtrain_comm_t *comm) {
                    auto table_of = [&](const char *name, uint32_t not_finite) {
                        dtrain_table_params_t params = table_params(DTRAIN_RULE_ADD, 0);
                        params.length = sparse ? 0 : 4;
                        params.dim = sparse ? 2 : 0;
                        params.wire_dtype = wire;
                        params.consistency = consistency;
                        params.not_finite = not_finite;
                        dtrain_table_t *table = nullptr;
                        OK(dtrain_table_create(comm, name, &params, &table));
                        return table;
                    };
                    const uint64_t keys[] = {77, 88};
                    auto push = [&](dtrain_table_t *table, const float *g) {
                        return sparse ? dtrain_table_push_rows(table, keys, 2, g, nullptr, nullptr)
                                      : dtrain_table_push(table, 0, 4, g, nullptr, nullptr);
                    };
                    auto pull = [&](dtrain_table_t *table) {
                        OK(dtrain_table_clock(table, nullptr, nullptr));
                        OK(dtrain_barrier(comm, nullptr, nullptr));
                        std::vector<float> w(4);
                        OK(sparse
                               ? dtrain_table_pull_rows(table, keys, 2, w.data(), nullptr, nullptr)
                               : dtrain_table_pull(table, 0, 4, w.data(), nullptr, nullptr));
                        return w;
                    };
                    const float good[] = {1, 2, 3, 4},
                                bad[] = {1, 2, 3, rank == 0 ? NAN : -infinity};
                    dtrain_table_t *takes = table_of("takes", 0);
                    OK(push(takes, bad));
                    REQUIRE(pull(takes)[0] == 2 && !std::isfinite(pull(takes)[3]));
                    dtrain_table_t *refuses = table_of("refuses", DTRAIN_NOT_FINITE_REFUSE);
                    FAILS(DTRAIN_ERR_INVALID, push(refuses, bad));
                    const std::string who = "worker " + std::to_string(rank) +
                                            " pushed to element, or key, " + (sparse ? "88" : "3");
                    REQUIRE(ranks::last_error().find(who) != std::string::npos);
                    OK(push(refuses, good));
                    REQUIRE((pull(refuses) == std::vector<float>{2, 4, 6, 8}));
                    dtrain_table_t *drops = table_of("drops", DTRAIN_NOT_FINITE_DROP);
                    OK(push(drops, bad));
                    OK(push(drops, good));
                    REQUIRE((pull(drops) == std::vector<float>{2, 4, 6, 8}));
                    float both[4] = {};
                    OK(sparse ? dtrain_table_push_pull_rows(drops, keys, 2, bad, both, nullptr,
                                                            nullptr)
                              : dtrain_table_push_pull(drops, 0, 4, bad, both, nullptr, nullptr));
                    REQUIRE(both[3] == 8);
                    dtrain_table_stats_t stats;
                    DTRAIN_INIT(&stats);
                    OK(dtrain_stats_table(drops, -1, &stats));
                    REQUIRE(stats.not_finite == 2 && stats.refused == 0);
                    OK(dtrain_barrier(comm, nullptr, nullptr));
                    for (dtrain_table_t *table : {takes, refuses, drops})
                        OK(dtrain_table_destroy(table));
                });
}

// A table that refuses such a push applies nothing of it, however many requests it takes, to
// however many servers; also where only the type of the wire, or a sum of rows, makes it infinite.
void what_is_not_finite_is_refused_as_a_whole(void **) {
    constexpr uint64_t rows = 40'000, dim = 4;
    struct Bad {
        uint32_t wire;
        float last, twice; // of the last row; of a row that is there twice
    };
    for (const bool sparse : {false, true})
        for (const Bad bad : {Bad{0, NAN, 1},
                              {DTRAIN_F16, 1e5f, 1},
                              {DTRAIN_I8, NAN, 1},
                              {0, 1, 3e38f},
                              {DTRAIN_F16, 1, 6e4f}}) {
            const bool sums = bad.twice > 1;
            if (sums && !sparse) continue;
            ranks::run(1, 2, {}, [&](int, dtrain_comm_t *comm) {
                dtrain_table_params_t params = table_params(DTRAIN_RULE_ADD, 0);
                params.length = sparse ? 0 : rows * dim;
                params.dim = sparse ? dim : 0;
                params.wire_dtype = bad.wire;
                params.not_finite = DTRAIN_NOT_FINITE_REFUSE;
                dtrain_table_t *table = nullptr;
                OK(dtrain_table_create(comm, "w", &params, &table));
                std::vector<float> g(rows * dim, 1), w(rows * dim, 7);
                std::vector<uint64_t> keys(rows);
                std::iota(keys.begin(), keys.end(), uint64_t{1});
                keys.back() = sums ? keys.front() : keys.back();
                g.back() = bad.last;
                g.front() = g[(rows - 1) * dim] = bad.twice;
                auto push = [&] {
                    return sparse
                               ? dtrain_table_push_rows(table, keys.data(), rows, g.data(), nullptr,
                                                        nullptr)
                               : dtrain_table_push(table, 0, g.size(), g.data(), nullptr, nullptr);
                };
                auto pull = [&] {
                    return sparse
                               ? dtrain_table_pull_rows(table, keys.data(), rows, w.data(), nullptr,
                                                        nullptr)
                               : dtrain_table_pull(table, 0, w.size(), w.data(), nullptr, nullptr);
                };
                FAILS(DTRAIN_ERR_INVALID, push());
                const uint64_t at = sums ? 1 : sparse ? rows : rows * dim - 1;
                const std::string what = "element, or key, " + std::to_string(at) + " has a NaN";
                REQUIRE(ranks::last_error().find(what) != std::string::npos);
                OK(pull());
                for (const float value : w) REQUIRE(value == 0);
                g.back() = g.front() = g[(rows - 1) * dim] = 1;
                OK(push());
                OK(pull());
                for (size_t i = 0; i < w.size(); i++)
                    REQUIRE(std::abs(w[i] - (sums && (i < dim || i >= w.size() - dim) ? 2 : 1)) <
                            0.02);
                OK(dtrain_table_destroy(table));
            });
        }
}

// Each worker is compensated for what others did since its own last pull.
void delays_are_compensated(void **) {
    ranks::run(2, 1, {}, [](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params = table_params(DTRAIN_RULE_DC_SGD, 1);
        params.learning_rate = 1;
        params.compensation = 1;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "w", &params, &table));
        float g = 1;
        REQUIRE(pulled(table, 0) == 0);
        OK(dtrain_barrier(comm, nullptr, nullptr));
        if (rank == 0) OK(dtrain_table_push(table, 0, 1, &g, nullptr, nullptr)); // -1
        OK(dtrain_barrier(comm, nullptr, nullptr));
        if (rank == 1) OK(dtrain_table_push(table, 0, 1, &g, nullptr, nullptr)); // -1 - (1 - 1)
        OK(dtrain_barrier(comm, nullptr, nullptr));
        REQUIRE(pulled(table, 0) == -1);
        OK(dtrain_table_destroy(table));
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(rows_stay_together),
        cmocka_unit_test(a_long_row_is_exact_under_bsp),
        cmocka_unit_test(state_moves_from_table_to_table),
        cmocka_unit_test(rates_belong_to_clocks),
        cmocka_unit_test(a_rate_holds_for_later_pushes),
        cmocka_unit_test(zeros_are_taken),
        cmocka_unit_test(what_is_not_finite),
        cmocka_unit_test(what_is_not_finite_is_refused_as_a_whole),
        cmocka_unit_test(delays_are_compensated),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
