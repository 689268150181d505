// Calls on tables in a GPU's memory beside pushes, and checkpoints between a GPU and host memory.
// SPDX-License-Identifier: Apache-2.0
#include "contract/checkpoints.h"
#include "gpu/twins.h"

namespace {

using gpu::Numbers;
using gpu::table_params;
using gpu::Twins;
using gpu::with_device;

constexpr uint64_t length = 300'007; // several requests

// set, state, rates, counts, fused pushes: from any place on, over servers and without.
void other_calls(void **) {
    for (const int servers : {0, 2})
        for (const uint32_t dtype : {DTRAIN_F32, DTRAIN_BF16})
            ranks::run(1, servers, with_device, [dtype](int, dtrain_comm_t *comm) {
                dtrain_table_params_t params = table_params(DTRAIN_RULE_ADAM, dtype, length);
                const Twins twins(comm, params);
                Numbers numbers(5);
                const auto g = numbers.of(dtype, length), w = numbers.of(dtype, length);
                twins.both([&](dtrain_table_t *table) {
                    return dtrain_table_set(table, 3, length - 7, w.data(), nullptr, nullptr);
                });
                twins.same_values();
                twins.push(0, length, g.data());
                twins.both([&](dtrain_table_t *table) {
                    return dtrain_table_set_rate(table, 0.3, nullptr, nullptr);
                });
                // Second moments are not negative: their roots would be NaNs, whose bits may
                // differ.
                std::vector<float> moments(length);
                for (float &moment : moments) moment = float(numbers.below(1000)) / 64;
                const std::vector<uint64_t> steps(100, 17);
                twins.both([&](dtrain_table_t *table) {
                    return dtrain_table_set_state(table, 1, 11, length - 11, moments.data(),
                                                  nullptr, nullptr);
                });
                twins.both([&](dtrain_table_t *table) {
                    return dtrain_table_set_state(table, 2, 50, steps.size(), steps.data(), nullptr,
                                                  nullptr);
                });
                twins.same("fused", length * dtrain_dtype_size(dtype),
                           [&](dtrain_table_t *table, void *to) {
                               return dtrain_table_push_pull(table, 0, length, g.data(), to,
                                                             nullptr, nullptr);
                           });
                twins.same_state();
                // From and to memory of a GPU, which need not be the table's.
                gpu::Buffer buffer = gpu::copy_of(g, gpu::devices() - 1);
                OK(dtrain_table_push(twins.on_device(), 0, length, buffer.address(), nullptr,
                                     nullptr));
                OK(dtrain_table_push(twins.on_host(), 0, length, g.data(), nullptr, nullptr));
                twins.same_values();
                const std::vector<uint64_t> absurd(1, UINT64_MAX);
                FAILS(DTRAIN_ERR_INVALID, dtrain_table_set_state(twins.on_device(), 2, 0, 1,
                                                                 absurd.data(), nullptr, nullptr));
            });
}

void values_that_are_not_finite(void **) {
    ranks::run(1, 1, with_device, [](int, dtrain_comm_t *comm) {
        dtrain_table_params_t params = table_params(DTRAIN_RULE_MOMENTUM, DTRAIN_F32, 1000);
        params.row_length = 10;
        params.clip_norm = 1;
        for (const uint32_t way : {DTRAIN_NOT_FINITE_TAKE, DTRAIN_NOT_FINITE_DROP}) {
            params.not_finite = way;
            const Twins twins(comm, params);
            std::vector<float> g(1000, 1);
            g[5] = INFINITY; // its row's norm is that of the finite ones
            twins.push(0, 1000, g.data());
            twins.same("finite rows", 990 * sizeof(float), [](dtrain_table_t *table, void *to) {
                return dtrain_table_pull(table, 10, 990, to, nullptr, nullptr);
            });
        }
        params.not_finite = DTRAIN_NOT_FINITE_REFUSE;
        const Twins twins(comm, params);
        const std::vector<float> g(1000, NAN);
        FAILS(DTRAIN_ERR_INVALID,
              dtrain_table_push(twins.on_device(), 0, 1000, g.data(), nullptr, nullptr));
        twins.same_values();
    });
}

void modes_change(void **) {
    ranks::run(2, 1, with_device, [](int rank, dtrain_comm_t *comm) {
        const dtrain_table_params_t params = table_params(DTRAIN_RULE_ADAGRAD, DTRAIN_F32, 5000);
        const Twins twins(comm, params);
        Numbers numbers{uint64_t(rank)};
        for (const uint32_t mode : {DTRAIN_BSP, DTRAIN_QUORUM, DTRAIN_ASYNC, DTRAIN_BSP}) {
            dtrain_table_params_t wanted;
            DTRAIN_INIT(&wanted);
            wanted.consistency = mode;
            wanted.quorum = mode == DTRAIN_QUORUM ? 2 : 0;
            wanted.reproducible = mode != DTRAIN_ASYNC;
            twins.both([&](dtrain_table_t *table) {
                return dtrain_table_set_consistency(comm, table, &wanted, nullptr);
            });
            for (int clock = 0; clock < 3; clock++) {
                const auto g = numbers.of(DTRAIN_F32, 5000);
                if (rank == 0 || mode != DTRAIN_ASYNC) twins.push(0, 5000, g.data());
                twins.both(
                    [](dtrain_table_t *t) { return dtrain_table_clock(t, nullptr, nullptr); });
                OK(dtrain_barrier(comm, nullptr, nullptr));
                twins.same_values();
                OK(dtrain_barrier(comm, nullptr, nullptr));
            }
        }
        twins.same_state();
    });
}

dtrain_table_t *open(dtrain_comm_t *comm, uint32_t memory, uint32_t dtype, uint32_t rule) {
    dtrain_table_params_t params = table_params(rule, dtype, length);
    params.memory = memory;
    dtrain_table_t *table = nullptr;
    OK(dtrain_table_create(comm, "w", &params, &table));
    return table;
}

std::vector<uint8_t> pulled(dtrain_table_t *table, uint32_t dtype) {
    std::vector<uint8_t> values(length * dtrain_dtype_size(dtype));
    OK(dtrain_table_pull(table, 0, length, values.data(), nullptr, nullptr));
    return values;
}

// A table goes on from host memory to a GPU, and back, as one that stays where it is. The files are
// the same, so the order of the servers' number does not matter.
void checkpoints_move(void **) {
    for (const uint32_t dtype : {DTRAIN_F32, DTRAIN_F64, DTRAIN_F16})
        for (const uint32_t from : {DTRAIN_MEM_HOST, DTRAIN_MEM_CUDA}) {
            checkpoints::Folder folder;
            ranks::Options options = folder.options();
            options.push_back(with_device[0]);
            Numbers numbers(3);
            const auto g = numbers.of(dtype, length);
            std::vector<uint8_t> expected;
            ranks::run(1, 2, options, [&](int, dtrain_comm_t *comm) {
                dtrain_table_t *table = open(comm, from, dtype, DTRAIN_RULE_ADAM);
                for (int i = 0; i < 2; i++) // the second one is changed while it is saved
                    OK(dtrain_table_push(table, 0, length, g.data(), nullptr, nullptr));
                OK(dtrain_checkpoint_save(&table, 1, 7, nullptr, nullptr));
                OK(dtrain_table_push(table, 0, length, g.data(), nullptr, nullptr));
                expected = pulled(table, dtype);
                OK(dtrain_table_destroy(table));
            });
            const uint32_t to = from == DTRAIN_MEM_HOST ? DTRAIN_MEM_CUDA : DTRAIN_MEM_HOST;
            ranks::run(1, 2, options, [&](int, dtrain_comm_t *comm) {
                dtrain_table_t *table = open(comm, to, dtype, DTRAIN_RULE_ADAM);
                uint64_t step = 0;
                OK(dtrain_checkpoint_restore(&table, 1, 7, nullptr, &step));
                OK(dtrain_table_push(table, 0, length, g.data(), nullptr, nullptr));
                REQUIRE(pulled(table, dtype) == expected);
                OK(dtrain_table_destroy(table));
            });
        }
}

// What is saved is one moment, whatever is pushed meanwhile.
void saved_while_it_changes(void **) {
    checkpoints::Folder folder;
    ranks::Options options = folder.options();
    options.push_back(with_device[0]);
    ranks::run(2, 1, options, [](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params = table_params(DTRAIN_RULE_MOMENTUM, DTRAIN_F32, length);
        params.consistency = DTRAIN_BSP;
        params.memory = DTRAIN_MEM_CUDA;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "w", &params, &table));
        const std::vector<float> g(length, 1);
        std::vector<float> values;
        for (uint64_t clock = 0; clock < 4; clock++) {
            if (rank == 1) OK(dtrain_checkpoint_save(&table, 1, clock, nullptr, nullptr));
            OK(dtrain_table_push(table, 0, length, g.data(), nullptr, nullptr));
            OK(dtrain_table_clock(table, nullptr, nullptr));
            values.resize(length);
            OK(dtrain_table_pull(table, 0, length, values.data(), nullptr, nullptr));
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
        if (rank == 0) {
            const float last = values[0];
            OK(dtrain_checkpoint_restore(&table, 1, 3, nullptr, nullptr));
            OK(dtrain_table_pull(table, 0, length, values.data(), nullptr, nullptr));
            for (const float x : values) REQUIRE(x == values[0] && x > last);
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_table_destroy(table));
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(other_calls),
        cmocka_unit_test(values_that_are_not_finite),
        cmocka_unit_test(modes_change),
        cmocka_unit_test(checkpoints_move),
        cmocka_unit_test(saved_while_it_changes),
    };
    return cmocka_run_group_tests_name("calls on tables in a GPU's memory", tests, nullptr,
                                       nullptr);
}
