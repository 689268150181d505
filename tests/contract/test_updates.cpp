// A table that takes over what another one has learned, with the number of its updates, goes on as
// the other one would have.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include <cstring>

namespace {

constexpr uint64_t length = 1000, dim = 4, most_updates = uint64_t{1} << 53;

// With dedicated servers, and without.
void everywhere(const std::function<void(int rank, dtrain_comm_t *comm)> &job) {
    ranks::run(2, 3, {}, job);
    ranks::run(3, 0, {}, job);
}

// Everything that depends on the number of an update: the rule's steps, the schedule, rounding.
dtrain_table_params_t numbered(uint32_t consistency, bool sparse) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    if (sparse)
        params.dim = dim;
    else
        params.length = length;
    params.rule = DTRAIN_RULE_ADAM;
    params.steps = DTRAIN_STEPS_TABLE;
    params.schedule = DTRAIN_SCHEDULE_COSINE;
    params.warmup_steps = 5;
    params.decay_steps = 50;
    params.consistency = consistency;
    if (!sparse) params.storage_dtype = DTRAIN_BF16;
    return params;
}

std::vector<float> gradient(uint32_t step) {
    std::vector<float> g(length);
    for (uint64_t i = 0; i < length; i++) g[i] = float((i * 7 + step * 13) % 32) / 16 - 1;
    return g;
}

// One worker's step, of all elements or of rows whose keys lie on all servers.
const std::vector<uint64_t> &keys() {
    static const std::vector<uint64_t> all = [] {
        std::vector<uint64_t> made;
        for (uint64_t i = 0; i < length / dim; i++) made.push_back(i * 0x9e3779b97f4a7c15);
        return made;
    }();
    return all;
}

void step(dtrain_table_t *table, bool sparse, uint32_t number) {
    const std::vector<float> g = gradient(number);
    if (sparse)
        OK(dtrain_table_push_rows(table, keys().data(), keys().size(), g.data(), nullptr, nullptr));
    else
        OK(dtrain_table_push(table, 0, length, g.data(), nullptr, nullptr));
}

std::vector<float> values(dtrain_table_t *table, bool sparse) {
    std::vector<float> w(length);
    if (sparse)
        OK(dtrain_table_pull_rows(table, keys().data(), keys().size(), w.data(), nullptr, nullptr));
    else
        OK(dtrain_table_pull(table, 0, length, w.data(), nullptr, nullptr));
    return w;
}

void take_over(dtrain_table_t *to, dtrain_table_t *from, bool sparse) {
    const uint64_t count = keys().size();
    std::vector<float> numbers = values(from, sparse);
    if (sparse)
        OK(dtrain_table_set_rows(to, keys().data(), count, numbers.data(), nullptr, nullptr));
    else
        OK(dtrain_table_set(to, 0, length, numbers.data(), nullptr, nullptr));
    for (uint32_t index = 0; index < 2; index++) {
        if (sparse) {
            OK(dtrain_table_pull_state_rows(from, index, keys().data(), count, numbers.data(),
                                            nullptr, nullptr));
            OK(dtrain_table_set_state_rows(to, index, keys().data(), count, numbers.data(), nullptr,
                                           nullptr));
        } else {
            OK(dtrain_table_pull_state(from, index, 0, length, numbers.data(), nullptr, nullptr));
            OK(dtrain_table_set_state(to, index, 0, length, numbers.data(), nullptr, nullptr));
        }
    }
}

bool same(dtrain_table_t *a, dtrain_table_t *b, bool sparse) {
    const std::vector<float> x = values(a, sparse), y = values(b, sparse);
    return std::memcmp(x.data(), y.data(), length * sizeof(float)) == 0;
}

// `told` says whether the second table is told the number: without it, the test must see that it
// goes on differently.
void goes_on(int rank, dtrain_comm_t *comm, bool sparse, bool told) {
    const dtrain_table_params_t params = numbered(DTRAIN_ASYNC, sparse);
    dtrain_table_t *from = nullptr, *to = nullptr;
    OK(dtrain_table_create(comm, "from", &params, &from));
    OK(dtrain_table_create(comm, "to", &params, &to));
    if (rank == 0) {
        for (uint32_t number = 0; number < 12; number++) step(from, sparse, number);
        take_over(to, from, sparse);
        REQUIRE(same(from, to, sparse));
        if (told) OK(dtrain_table_set_updates(to, 12, nullptr, nullptr));
        for (uint32_t number = 12; number < 24; number++) {
            step(from, sparse, number);
            step(to, sparse, number);
        }
        REQUIRE(same(from, to, sparse) == told);
    }
    OK(dtrain_barrier(comm, nullptr, nullptr));
    OK(dtrain_table_destroy(from));
    OK(dtrain_table_destroy(to));
}

void tables_go_on_with_the_number(void **) {
    everywhere([](int rank, dtrain_comm_t *comm) {
        for (bool sparse : {false, true})
            for (bool told : {true, false}) goes_on(rank, comm, sparse, told);
    });
}

// Clocks stay as they are, and the number counts on with them.
void clocks_stay(void **) {
    everywhere([](int rank, dtrain_comm_t *comm) {
        const dtrain_table_params_t params = numbered(DTRAIN_BSP, false);
        dtrain_table_t *from = nullptr, *to = nullptr;
        OK(dtrain_table_create(comm, "from", &params, &from));
        OK(dtrain_table_create(comm, "to", &params, &to));
        uint32_t number = 0;
        auto clock = [&](dtrain_table_t *table) {
            step(table, false, number);
            OK(dtrain_table_clock(table, nullptr, nullptr));
            (void)values(table, false); // the clock is over
        };
        for (; number < 7; number++) clock(from);
        for (uint32_t i = 0; i < 3; i++) clock(to); // its clock is another one
        OK(dtrain_barrier(comm, nullptr, nullptr));
        if (rank == 0) {
            take_over(to, from, false);
            OK(dtrain_table_set_updates(to, 7, nullptr, nullptr));
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
        for (; number < 15; number++) {
            clock(from);
            clock(to);
        }
        REQUIRE(same(from, to, false));
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_table_destroy(from));
        OK(dtrain_table_destroy(to));
    });
}

// A version is a number of updates: a pull that waits for one gets it, also if nobody pushes.
void versions_count_on(void **) {
    ranks::run(2, 2, {}, [](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.length = length;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "w", &params, &table));
        if (rank == 0) {
            dtrain_op_params_t op;
            DTRAIN_INIT(&op);
            op.min_version = 1000;
            std::vector<float> w(length);
            dtrain_event_t event;
            dtrain_request_t *request = nullptr;
            OK(dtrain_table_pull(table, 0, length, w.data(), &op, &request));
            OK(dtrain_barrier(comm, nullptr, nullptr));
            OK(dtrain_request_wait(request, -1));
            OK(dtrain_request_result(request, &event));
            REQUIRE(event.version == 1000);
            dtrain_request_free(request);
        } else {
            OK(dtrain_barrier(comm, nullptr, nullptr));
            OK(dtrain_table_set_updates(table, 1000, nullptr, nullptr));
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_table_destroy(table));
    });
}

void bad_numbers_are_refused(void **) {
    ranks::run(1, 1, {}, [](int, dtrain_comm_t *comm) {
        const dtrain_table_params_t params = numbered(DTRAIN_ASYNC, false);
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "w", &params, &table));
        OK(dtrain_table_set_updates(table, most_updates, nullptr, nullptr));
        FAILS(DTRAIN_ERR_INVALID,
              dtrain_table_set_updates(table, most_updates + 1, nullptr, nullptr));
        REQUIRE(ranks::last_error().find("2^53") != std::string::npos);
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_set_updates(nullptr, 1, nullptr, nullptr));
        OK(dtrain_table_destroy(table));
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(tables_go_on_with_the_number),
        cmocka_unit_test(clocks_stay),
        cmocka_unit_test(versions_count_on),
        cmocka_unit_test(bad_numbers_are_refused),
    };
    return cmocka_run_group_tests_name("updates", tests, nullptr, nullptr);
}
