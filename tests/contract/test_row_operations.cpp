// What can be done with rows besides push and pull: both at once, setting, erasing, counting, their
// state, learning rates; limits, and that memory does not grow with the number of calls.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"
#include "contract/rules.h"

#include <array>
#include <malloc.h>
#include <random>

namespace {

constexpr uint32_t dim = 3;
using Row = std::array<float, dim>;

struct Table {
    Table(dtrain_comm_t *comm, const dtrain_table_params_t &params, const char *name = "rows") {
        OK(dtrain_table_create(comm, name, &params, &handle));
    }
    ~Table() { OK(dtrain_table_destroy(handle)); }
    operator dtrain_table_t *() const { return handle; }

    Row row(uint64_t key) const {
        Row row;
        OK(dtrain_table_pull_rows(handle, &key, 1, row.data(), nullptr, nullptr));
        return row;
    }
    uint64_t count() const {
        uint64_t count = UINT64_MAX;
        OK(dtrain_table_count_rows(handle, &count, nullptr, nullptr));
        return count;
    }
    dtrain_table_t *handle = nullptr;
};

dtrain_table_params_t row_params(uint32_t rule, uint32_t consistency = DTRAIN_ASYNC) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.dim = dim;
    params.rule = rule;
    params.consistency = consistency;
    return params;
}

std::vector<uint64_t> numbered_keys(uint64_t count) {
    std::vector<uint64_t> keys(count);
    for (uint64_t i = 0; i < count; i++) keys[i] = i * 0x9e3779b97f4a7c15; // 0 among them
    return keys;
}

// Pushes and pulls at once are what both are one after the other.
void push_pull(int servers, uint32_t consistency) {
    ranks::run(2, servers, {}, [consistency](int rank, dtrain_comm_t *comm) {
        const Table fused(comm, row_params(DTRAIN_RULE_ADD, consistency), "fused");
        const auto all = numbered_keys(30'000);
        std::mt19937_64 random(uint64_t(rank) + 1);
        std::vector<uint64_t> keys;
        for (int i = 0; i < 40'000; i++) keys.push_back(all[random() % all.size()]);
        std::vector<Row> rows(keys.size());
        for (int round = 1; round <= 4; round++) {
            for (size_t i = 0; i < keys.size(); i++) rows[i].fill(float(keys[i] % 5));
            OK(dtrain_table_push_pull_rows(fused, keys.data(), keys.size(), rows.data(),
                                           rows.data(), nullptr, nullptr));
            std::vector<Row> other(keys.size());
            if (consistency == DTRAIN_BSP)
                OK(dtrain_table_pull_rows(fused, keys.data(), keys.size(), other.data(), nullptr,
                                          nullptr));
            for (size_t i = 0; i < keys.size(); i++) {
                const float least = float(round) * float(keys[i] % 5); // this key, this worker
                REQUIRE(rows[i][0] >= least && rows[i][0] == rows[i][dim - 1]);
                if (consistency == DTRAIN_BSP) REQUIRE(rows[i] == other[i]);
            }
            if (consistency == DTRAIN_SSP) OK(dtrain_table_clock(fused, nullptr, nullptr));
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
        double sum = 0, due = 0; // of what both have pushed
        std::vector<Row> final(all.size());
        OK(dtrain_table_pull_rows(fused, all.data(), all.size(), final.data(), nullptr, nullptr));
        for (const Row &row : final) sum += row[1];
        for (uint64_t w = 1; w <= 2; w++) {
            std::mt19937_64 its(w);
            for (int i = 0; i < 40'000; i++) due += 4 * double(all[its() % all.size()] % 5);
        }
        REQUIRE(sum == due);
    });
}
void push_and_pull_at_once(void **) {
    for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_BSP, DTRAIN_SSP})
        for (int servers : {0, 1, 3}) push_pull(servers, consistency);
}

void rows_are_set_erased_and_counted(void **) {
    for (int servers : {0, 1, 3})
        ranks::run(1, servers, {}, [](int, dtrain_comm_t *comm) {
            auto params = row_params(DTRAIN_RULE_MOMENTUM);
            params.initial = 2;
            params.learning_rate = 1;
            params.momentum = 0.5;
            const Table table(comm, params);
            const auto keys = numbered_keys(50'000); // several requests per server
            std::vector<Row> rows(keys.size(), Row{1, 1, 1});
            REQUIRE(table.count() == 0);
            OK(dtrain_table_push_rows(table, keys.data(), 100, rows.data(), nullptr, nullptr));
            REQUIRE(table.count() == 100 && table.row(keys[5])[2] == 1); // 2 - 1
            for (size_t i = 0; i < rows.size(); i++) rows[i].fill(float(i));
            OK(dtrain_table_set_rows(table, keys.data(), keys.size(), rows.data(), nullptr,
                                     nullptr));
            REQUIRE(table.count() == keys.size());
            std::vector<Row> back(keys.size());
            OK(dtrain_table_pull_rows(table, keys.data(), keys.size(), back.data(), nullptr,
                                      nullptr));
            REQUIRE(back == rows);
            const Row ones = {1, 1, 1};
            for (uint64_t i : {50, 200}) {
                OK(dtrain_table_push_rows(table, &keys[i], 1, ones.data(), nullptr, nullptr));
                // Momentum is there of those that were pushed before.
                REQUIRE(table.row(keys[i])[0] == float(i) - (i < 100 ? 1.5F : 1.0F));
            }
            const uint64_t twice[] = {keys[7], keys[8], keys[7]};
            const Row given[] = {{1, 1, 1}, {2, 2, 2}, {3, 3, 3}};
            OK(dtrain_table_set_rows(table, twice, 3, given, nullptr, nullptr));
            REQUIRE(table.row(keys[7]) == given[2] && table.row(keys[8]) == given[1]);
            OK(dtrain_table_erase_rows(table, twice, 3, nullptr, nullptr));
            REQUIRE(table.count() == keys.size() - 2);
            REQUIRE(table.row(keys[7])[0] == 2 && table.row(keys[9])[0] == 9);
            OK(dtrain_table_push_rows(table, &keys[50], 1, ones.data(), nullptr, nullptr));
            OK(dtrain_table_erase_rows(table, keys.data(), keys.size(), nullptr, nullptr));
            OK(dtrain_table_erase_rows(table, keys.data(), keys.size(), nullptr, nullptr));
            REQUIRE(table.count() == 0);
            OK(dtrain_table_push_rows(table, &keys[50], 1, ones.data(), nullptr, nullptr));
            REQUIRE(table.row(keys[50])[1] == 1); // as at the very first: its state has gone, too
            FAILS(DTRAIN_ERR_INVALID, dtrain_table_count_rows(table, nullptr, nullptr, nullptr));
        });
}

// Values and state, set in another table, make it go on bit for bit as the first.
void state_can_be_moved(void **) {
    ranks::run(1, 2, {}, [](int, dtrain_comm_t *comm) {
        const auto keys = numbered_keys(7000);
        for (uint32_t rule : common_rules) {
            std::mt19937_64 random(rule);
            const Table first(comm, row_params(rule), "first"), second(comm, row_params(rule), "2");
            std::vector<Row> g(keys.size()), w(keys.size()), again(keys.size());
            auto push = [&](dtrain_table_t *table, uint64_t count) {
                OK(dtrain_table_push_rows(table, keys.data(), count, g.data(), nullptr, nullptr));
            };
            for (uint64_t count : {7000, 3500, 1000}) {
                for (Row &row : g)
                    for (float &x : row) x = float(random() % 1000) / 500 - 1;
                push(first, count);
            }
            OK(dtrain_table_pull_rows(first, keys.data(), keys.size(), w.data(), nullptr, nullptr));
            OK(dtrain_table_set_rows(second, keys.data(), keys.size(), w.data(), nullptr, nullptr));
            const char *name = nullptr;
            uint32_t dtype = 0, index = 0;
            uint64_t each = 0;
            for (; dtrain_table_describe_state(first, index, &name, &dtype, &each) == DTRAIN_OK;
                 index++) {
                std::vector<char> state(keys.size() * each * dtrain_dtype_size(dtype));
                OK(dtrain_table_pull_state_rows(first, index, keys.data(), keys.size(),
                                                state.data(), nullptr, nullptr));
                OK(dtrain_table_set_state_rows(second, index, keys.data(), keys.size(),
                                               state.data(), nullptr, nullptr));
                if (std::string(name) != "steps") continue;
                const auto *steps = reinterpret_cast<const uint64_t *>(state.data());
                REQUIRE(each == 1 && steps[0] == 3 && steps[2000] == 2 && steps[5000] == 1);
            }
            if (index == 0) continue;
            push(first, 7000);
            push(second, 7000);
            OK(dtrain_table_pull_rows(first, keys.data(), keys.size(), w.data(), nullptr, nullptr));
            OK(dtrain_table_pull_rows(second, keys.data(), keys.size(), again.data(), nullptr,
                                      nullptr));
            REQUIRE(w == again);
            float none[dim] = {1, 1, 1};
            const uint64_t absent = 77;
            OK(dtrain_table_pull_state_rows(first, 0, &absent, 1, none, nullptr, nullptr));
            REQUIRE(none[0] == 0 && first.count() == keys.size());
            FAILS(DTRAIN_ERR_NOT_FOUND,
                  dtrain_table_pull_state_rows(first, index, &absent, 1, none, nullptr, nullptr));
            FAILS(DTRAIN_ERR_INVALID,
                  dtrain_table_pull_state(first, 0, 0, 1, none, nullptr, nullptr));
        }
    });
}

void rates_are_those_of_the_schedule(void **) {
    ranks::run(2, 2, {}, [](int rank, dtrain_comm_t *comm) {
        const Row ones = {1, 1, 1};
        {
            const Table table(comm, row_params(DTRAIN_RULE_SGD, DTRAIN_BSP));
            double due = 0, rate = 1;
            auto push = [&] {
                for (uint64_t key = 0; key < 8; key++)
                    OK(dtrain_table_push_rows(table, &key, 1, ones.data(), nullptr, nullptr));
                OK(dtrain_table_clock(table, nullptr, nullptr));
            };
            if (rank == 0) OK(dtrain_table_set_rate(table, rate, nullptr, nullptr));
            for (int clock = 0; clock < 6; clock++) {
                if (rank == 0) {
                    push();
                    OK(dtrain_table_set_rate(table, rate / 2, nullptr, nullptr)); // of the next
                }
                OK(dtrain_barrier(comm, nullptr, nullptr));
                if (rank == 1) push();
                due -= 2 * rate; // of both workers, at the rate of their clock
                for (uint64_t key = 0; key < 8; key++) REQUIRE(double(table.row(key)[1]) == due);
                rate /= 2;
            }
        }
        const Table table(comm, row_params(DTRAIN_RULE_SGD));
        OK(dtrain_table_set_rate(table, 0.25, nullptr, nullptr));
        const auto key = uint64_t(rank);
        OK(dtrain_table_push_rows(table, &key, 1, ones.data(), nullptr, nullptr));
        REQUIRE(table.row(key)[0] == -0.25F);
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

// What does not fit is refused by name; what is there goes on.
void limits(const ranks::Options &options, uint64_t max_bytes, const char *name) {
    ranks::run(2, 1, options, [max_bytes, name](int rank, dtrain_comm_t *comm) {
        auto params = row_params(DTRAIN_RULE_ADD);
        params.max_bytes = max_bytes;
        const Table table(comm, params);
        const auto keys = numbered_keys(200'000);
        const std::vector<Row> rows(keys.size(), Row{1, 2, 3});
        if (rank == 0) {
            FAILS(DTRAIN_ERR_LIMIT, dtrain_table_push_rows(table, keys.data(), keys.size(),
                                                           rows.data(), nullptr, nullptr));
            REQUIRE(ranks::last_error().find(name) != std::string::npos);
            FAILS(DTRAIN_ERR_LIMIT, dtrain_table_set_rows(table, keys.data(), keys.size(),
                                                          rows.data(), nullptr, nullptr));
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
        const uint64_t count = table.count(); // 12 bytes each and an index of 16 to 20
        REQUIRE(count > 1'000'000 / 40 && count < 1'000'000 / 28);
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_table_push_rows(table, keys.data(), 1000, rows.data(), nullptr, nullptr));
        OK(dtrain_barrier(comm, nullptr, nullptr));
        REQUIRE(table.row(keys[3])[1] == 6);
        OK(dtrain_barrier(comm, nullptr, nullptr));
        // Room that was made is room for others.
        if (rank == 0) {
            OK(dtrain_table_erase_rows(table, keys.data(), keys.size(), nullptr, nullptr));
            OK(dtrain_table_push_rows(table, &keys[150'000], 20'000, rows.data(), nullptr,
                                      nullptr));
            REQUIRE(table.count() == 20'000);
        }
    });
}
void a_table_has_its_limit(void **) { limits({}, 1'000'000, "max_bytes"); }
void a_server_has_its_limit(void **) {
    limits({{"ps.memory", "1000000"}}, 0, "limit of the server");
}

// Calls that are repeated free all memory that they take.
void memory_does_not_grow(void **) {
    for (int servers : {0, 1})
        ranks::run(1, servers, {}, [](int, dtrain_comm_t *comm) {
            const Table table(comm, row_params(DTRAIN_RULE_ADAM));
            constexpr size_t calls_at_once = 32, batch = 64;
            const auto keys = numbered_keys(1000);
            std::vector<Row> rows(calls_at_once * batch);
            std::vector<dtrain_request_t *> requests(calls_at_once);
            uint64_t next = 0;
            auto work = [&](int rounds) {
                for (int round = 0; round < rounds; round++) {
                    for (size_t i = 0; i < calls_at_once; i++) {
                        const uint64_t *chosen = &keys[next++ * batch % (keys.size() - batch)];
                        Row *its = &rows[i * batch];
                        OK(i % 2 == 0 ? dtrain_table_push_rows(table, chosen, batch, its, nullptr,
                                                               &requests[i])
                                      : dtrain_table_push_pull_rows(table, chosen, batch, its, its,
                                                                    nullptr, &requests[i]));
                    }
                    for (dtrain_request_t *request : requests) OK(dtrain_request_wait(request, -1));
                    for (dtrain_request_t *request : requests) dtrain_request_free(request);
                }
                const struct mallinfo2 info = mallinfo2(); // zeros under sanitizers
                return info.uordblks + info.hblkhd;
            };
            const size_t before = work(200);
            const size_t after = work(2000); // 64,000 requests
            REQUIRE(after < before + (128 << 10));
        });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(push_and_pull_at_once), cmocka_unit_test(rows_are_set_erased_and_counted),
        cmocka_unit_test(state_can_be_moved),    cmocka_unit_test(rates_are_those_of_the_schedule),
        cmocka_unit_test(a_table_has_its_limit), cmocka_unit_test(a_server_has_its_limit),
        cmocka_unit_test(memory_does_not_grow),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
