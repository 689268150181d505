// Weighted averages, and what they are for: local steps (FedAvg), client sampling; pulls that wait
// for a version.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include <cmath>
#include <random>

namespace {

constexpr uint64_t dim = 6;

// A table of dim numbers: a dense one, or some rows of a sparse one.
class Model {
  public:
    Model(dtrain_comm_t *comm, const char *name, dtrain_table_params_t params, bool sparse)
        : sparse_(sparse) {
        params.dtype = DTRAIN_F32;
        params.length = sparse ? 0 : dim;
        params.dim = sparse ? 2 : 0;
        OK(dtrain_table_create(comm, name, &params, &table));
    }
    ~Model() { OK(dtrain_table_destroy(table)); }
    dtrain_status_t push(const float *g, double weight = 0) {
        dtrain_op_params_t op;
        DTRAIN_INIT(&op);
        op.weight = weight;
        return sparse_ ? dtrain_table_push_rows(table, keys_, dim / 2, g, &op, nullptr)
                       : dtrain_table_push(table, 0, dim, g, &op, nullptr);
    }
    void clock() { OK(dtrain_table_clock(table, nullptr, nullptr)); }
    dtrain_status_t try_pull(float *w, uint64_t min_version = 0, int64_t timeout_ns = 0) {
        dtrain_op_params_t op;
        DTRAIN_INIT(&op);
        op.min_version = min_version;
        op.timeout_ns = timeout_ns;
        return sparse_ ? dtrain_table_pull_rows(table, keys_, dim / 2, w, &op, nullptr)
                       : dtrain_table_pull(table, 0, dim, w, &op, nullptr);
    }
    void pull(float *w) { OK(try_pull(w)); }

    dtrain_table_t *table = nullptr;

  private:
    const bool sparse_;
    const uint64_t keys_[dim / 2] = {3, 1ull << 60, 7};
};

dtrain_table_params_t params_of(uint32_t rule, uint32_t consistency, int workers) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.rule = rule;
    params.consistency = consistency;
    params.quorum = consistency == DTRAIN_QUORUM ? uint32_t(workers) : 0;
    params.aggregate = DTRAIN_AVG;
    if (rule != DTRAIN_RULE_ADD) params.learning_rate = 0.125;
    return params;
}

// Dense and sparse, over TCP and shared memory, with servers and without.
using Body = std::function<void(int rank, dtrain_comm_t *comm, uint32_t consistency, bool sparse)>;
void everywhere(int workers, const Body &body) {
    for (const char *transport : {"tcp", "shm"})
        for (int servers : {0, 2})
            for (uint32_t consistency : {DTRAIN_BSP, DTRAIN_QUORUM})
                for (bool sparse : {false, true})
                    ranks::run(workers, servers, {{"transports", transport}},
                               [&](int rank, dtrain_comm_t *comm) {
                                   body(rank, comm, consistency, sparse);
                               });
}

// The least-squares gradient of a worker's one sample: w - x.
void gradient(int rank, const float *w, float *g) {
    for (uint64_t i = 0; i < dim; ++i) g[i] = w[i] - float(rank + 1) * float(i);
}

// K local steps on every worker; the mean of what they come to, by numbers of samples.
void local_steps(Model &model, int rank, int steps, double samples) {
    float before[dim], w[dim], g[dim];
    model.pull(before);
    std::copy_n(before, dim, w);
    for (int i = 0; i < steps; ++i) {
        gradient(rank, w, g);
        for (uint64_t e = 0; e < dim; ++e) w[e] -= 0.125f * g[e];
    }
    for (uint64_t e = 0; e < dim; ++e) w[e] -= before[e];
    OK(model.push(w, samples));
    model.clock();
}

void one_local_step_is_plain_sgd(void **) {
    everywhere(3, [](int rank, dtrain_comm_t *comm, uint32_t consistency, bool sparse) {
        Model plain(comm, "plain", params_of(DTRAIN_RULE_SGD, consistency, 3), sparse);
        Model local(comm, "local", params_of(DTRAIN_RULE_ADD, consistency, 3), sparse);
        float w[dim], g[dim], other[dim];
        for (int i = 0; i < 20; ++i) {
            plain.pull(w);
            gradient(rank, w, g);
            OK(plain.push(g));
            plain.clock();
            local_steps(local, rank, 1, 50);
        }
        plain.pull(w);
        local.pull(other);
        for (uint64_t e = 0; e < dim; ++e)
            REQUIRE(std::fabs(w[e] - other[e]) < 1e-5f * float(e + 1));
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

void many_local_steps_find_the_weighted_mean(void **) {
    everywhere(3, [](int rank, dtrain_comm_t *comm, uint32_t consistency, bool sparse) {
        Model model(comm, "m", params_of(DTRAIN_RULE_ADD, consistency, 3), sparse);
        const double samples[] = {10, 20, 70};
        for (int round = 0; round < 40; ++round) local_steps(model, rank, 5, samples[rank]);
        float w[dim];
        model.pull(w);
        const float mean = 0.1f * 1 + 0.2f * 2 + 0.7f * 3;
        for (uint64_t e = 0; e < dim; ++e) REQUIRE(std::fabs(w[e] - mean * float(e)) < 1e-3f);
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

void who_pushes_nothing_does_not_count(void **) {
    everywhere(3, [](int rank, dtrain_comm_t *comm, uint32_t consistency, bool sparse) {
        Model model(comm, "m", params_of(DTRAIN_RULE_ADD, consistency, 3), sparse);
        const std::vector<float> four(dim, 4), eight(dim, 8);
        float w[dim];
        if (rank == 0) OK(model.push(four.data(), 3));
        if (rank == 1) OK(model.push(eight.data())); // as if it had said 1
        model.clock();
        model.pull(w);
        for (float x : w) REQUIRE(x == (3 * 4 + 8) / 4.0f);
        // Nobody says a weight: all who end the clock count.
        if (rank == 0) OK(model.push(four.data()));
        model.clock();
        model.pull(w);
        for (float x : w) REQUIRE(std::fabs(x - (5 + 4 / 3.0f)) < 1e-6f);
        // Nobody pushes.
        model.clock();
        float same[dim];
        model.pull(same);
        REQUIRE(std::equal(w, w + dim, same));
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

void weights_that_do_not_fit_are_refused(void **) {
    ranks::run(1, 0, {}, [](int, dtrain_comm_t *comm) {
        const std::vector<float> g(dim, 1);
        float w[dim];
        dtrain_op_params_t op;
        DTRAIN_INIT(&op);
        Model model(comm, "m", params_of(DTRAIN_RULE_ADD, DTRAIN_BSP, 1), false);
        for (double weight : {-1.0, double(NAN), double(INFINITY), 1e301})
            FAILS(DTRAIN_ERR_INVALID, model.push(g.data(), weight));
        OK(model.push(g.data(), 2));
        FAILS(DTRAIN_ERR_INVALID, model.push(g.data(), 3)); // of the same clock
        REQUIRE(ranks::last_error().find("weight") != std::string::npos);
        FAILS(DTRAIN_ERR_INVALID, model.push(g.data()));
        model.clock();
        OK(model.push(g.data()));
        model.clock();
        model.pull(w);
        REQUIRE(w[0] == 2);
        op.weight = 1;
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_pull(model.table, 0, dim, w, &op, nullptr));
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_clock(model.table, &op, nullptr));
        FAILS(DTRAIN_ERR_UNSUPPORTED, dtrain_barrier(comm, &op, nullptr));
        dtrain_table_params_t params = params_of(DTRAIN_RULE_ADD, DTRAIN_BSP, 1);
        params.aggregate = DTRAIN_SUM;
        Model sums(comm, "sums", params, false);
        FAILS(DTRAIN_ERR_INVALID, sums.push(g.data(), 1));
    });
}

// Key k is pushed by the workers of rank k and above, by the last of them twice: it counts once.
void rows_are_divided_by_their_pushers(int rank, dtrain_comm_t *comm, uint32_t consistency,
                                       uint32_t dtype) {
    constexpr uint64_t keys[] = {0, 1, 2};
    const bool floats = dtype == DTRAIN_F32;
    dtrain_table_params_t params = params_of(DTRAIN_RULE_ADD, consistency, 3);
    params.dtype = dtype;
    params.dim = 1;
    params.mean_over = DTRAIN_MEAN_PUSHERS;
    dtrain_table_t *table;
    OK(dtrain_table_create(comm, "t", &params, &table));
    float numbers[3];
    int64_t whole[3];
    void *const array = floats ? static_cast<void *>(numbers) : whole;
    auto push = [&](int count, int value, double weight = 0) {
        std::fill_n(numbers, 3, float(value));
        std::fill_n(whole, 3, value);
        dtrain_op_params_t op;
        DTRAIN_INIT(&op);
        op.weight = weight;
        OK(dtrain_table_push_rows(table, keys, uint64_t(count), array, &op, nullptr));
    };
    auto clock = [&] { OK(dtrain_table_clock(table, nullptr, nullptr)); };
    auto expect = [&](double first, double second, double third) {
        const double due[] = {first, second, third};
        OK(dtrain_table_pull_rows(table, keys, 3, array, nullptr, nullptr));
        for (int k = 0; k < 3; ++k)
            REQUIRE(std::fabs((floats ? double(numbers[k]) : double(whole[k])) - due[k]) < 1e-5);
    };
    push(rank + 1, 12);
    if (rank == 2) push(3, 12);
    clock();
    expect(48 / 3, 36 / 2, 24 / 1);
    push(rank + 1, -13);
    clock();
    expect(16 - 13, 18 - 13, 24 - 13);
    if (floats) { // weights of 1, 2.5 and, since it says none, 1
        push(rank + 1, 9, rank == 2 ? 0 : 1 + 1.5 * rank);
        if (rank == 1) push(1, 9, 2.5);
        clock();
        expect(3 + (9 + 2 * 9 * 2.5 + 9) / 4.5, 5 + 9, 11 + 9);
    }
    // To a mode in which nothing is divided, and back.
    dtrain_table_params_t other = params;
    other.consistency = DTRAIN_ASYNC;
    other.quorum = 0;
    OK(dtrain_table_set_consistency(comm, table, &other, nullptr));
    OK(dtrain_table_set_consistency(comm, table, &params, nullptr));
    if (rank == 0) OK(dtrain_table_erase_rows(table, keys, 3, nullptr, nullptr));
    OK(dtrain_barrier(comm, nullptr, nullptr));
    if (rank == 1) push(2, 5);
    clock();
    expect(5, 5, 0);
    OK(dtrain_barrier(comm, nullptr, nullptr));
    OK(dtrain_table_destroy(table));
}

void means_may_be_over_pushers(void **) {
    for (int servers : {0, 2})
        for (uint32_t consistency : {DTRAIN_BSP, DTRAIN_QUORUM})
            for (uint32_t dtype : {DTRAIN_F32, DTRAIN_I64})
                ranks::run(3, servers, {}, [&](int rank, dtrain_comm_t *comm) {
                    rows_are_divided_by_their_pushers(rank, comm, consistency, dtype);
                });
}

void means_over_pushers_are_of_sparse_averages(void **) {
    ranks::run(1, 0, {}, [](int, dtrain_comm_t *comm) {
        auto refused = [&](auto &&change) {
            dtrain_table_params_t params = params_of(DTRAIN_RULE_ADD, DTRAIN_BSP, 1);
            params.dtype = DTRAIN_F32;
            params.dim = 2;
            params.mean_over = DTRAIN_MEAN_PUSHERS;
            change(params);
            dtrain_table_t *table;
            FAILS(DTRAIN_ERR_INVALID, dtrain_table_create(comm, "t", &params, &table));
            REQUIRE(ranks::last_error().find("mean_over") != std::string::npos);
        };
        refused([](auto &params) {
            params.dim = 0;
            params.length = 8;
        });
        refused([](auto &params) { params.aggregate = DTRAIN_SUM; });
        refused([](auto &params) { params.mean_over = 3; });
    });
}

// A worker reads what another one has pushed, without a barrier.
void a_pull_waits_for_its_version(void **) {
    for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_SSP, DTRAIN_QUORUM})
        for (bool sparse : {false, true})
            ranks::run(2, 2, {}, [&](int rank, dtrain_comm_t *comm) {
                dtrain_table_params_t params = params_of(DTRAIN_RULE_ADD, consistency, 1);
                params.staleness = consistency == DTRAIN_SSP ? 9 : 0;
                params.aggregate = DTRAIN_SUM;
                Model model(comm, "m", params, sparse);
                const std::vector<float> one(dim, 1);
                float w[dim];
                if (rank == 0) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(30));
                    for (int i = 0; i < 5; ++i) {
                        OK(model.push(one.data()));
                        if (consistency == DTRAIN_QUORUM) model.clock();
                    }
                } else {
                    OK(model.try_pull(w, 5));
                    for (float x : w) REQUIRE(x == 5);
                    FAILS(DTRAIN_ERR_TIMEOUT, model.try_pull(w, 6, 20'000'000));
                    OK(model.try_pull(w, 5)); // the table lives on
                }
                OK(dtrain_barrier(comm, nullptr, nullptr));
            });
}

void a_bsp_clock_has_one_version(void **) {
    ranks::run(2, 1, {}, [](int, dtrain_comm_t *comm) {
        Model model(comm, "m", params_of(DTRAIN_RULE_ADD, DTRAIN_BSP, 2), false);
        float w[dim];
        model.clock();
        OK(model.try_pull(w, 1));
        FAILS(DTRAIN_ERR_STATE, model.try_pull(w, 2));
        REQUIRE(ranks::last_error().find("version 1, not 2") != std::string::npos);
        model.clock();
        OK(model.try_pull(w, 2));
        dtrain_op_params_t op;
        DTRAIN_INIT(&op);
        op.min_version = 1;
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_push(model.table, 0, dim, w, &op, nullptr));
        FAILS(DTRAIN_ERR_UNSUPPORTED, dtrain_barrier(comm, &op, nullptr));
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(one_local_step_is_plain_sgd),
        cmocka_unit_test(many_local_steps_find_the_weighted_mean),
        cmocka_unit_test(who_pushes_nothing_does_not_count),
        cmocka_unit_test(weights_that_do_not_fit_are_refused),
        cmocka_unit_test(means_may_be_over_pushers),
        cmocka_unit_test(means_over_pushers_are_of_sparse_averages),
        cmocka_unit_test(a_pull_waits_for_its_version),
        cmocka_unit_test(a_bsp_clock_has_one_version),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
