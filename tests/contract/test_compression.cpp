// Compressed all-reduce through the API: every kind, way to call and transport; bad input.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"
#include "dtrain_names.h"

#include <cmath>
#include <memory>
#include <random>

namespace {

using Vector = std::vector<float>;

struct Destroy {
    void operator()(dtrain_compressor_t *compressor) const {
        OK(dtrain_compressor_destroy(compressor));
    }
};
using Compressor = std::unique_ptr<dtrain_compressor_t, Destroy>;

#define DTRAIN_NUMBER(NAME, name) DTRAIN_COMPRESS_##NAME,
constexpr uint32_t all_kinds[] = {DTRAIN_EACH_COMPRESS(DTRAIN_NUMBER)};

dtrain_compressor_params_t params_of(uint32_t kind, uint64_t count) {
    dtrain_compressor_params_t params;
    DTRAIN_INIT(&params);
    params.kind = kind;
    params.count = count;
    return params;
}

Compressor make(dtrain_comm_t *comm, const dtrain_compressor_params_t &params) {
    dtrain_compressor_t *compressor = nullptr;
    OK(dtrain_compressor_create(comm, &params, &compressor));
    return Compressor(compressor);
}

dtrain_compression_stats_t stats(const Compressor &compressor) {
    dtrain_compression_stats_t s;
    OK(dtrain_compressor_stats(compressor.get(), &s));
    return s;
}

enum class How { blocking, request, queue };

// While a sum on the user's communicator goes on.
void reduce(dtrain_context_t *context, dtrain_comm_t *comm, const Compressor &compressor, How how,
            const float *send, float *recv) {
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    dtrain_cq_t *queue = nullptr;
    dtrain_request_t *request = nullptr;
    if (how == How::queue) {
        OK(dtrain_cq_create(context, 0, &queue));
        params.cq = queue;
    }
    OK(dtrain_compressor_allreduce(compressor.get(), send, recv, DTRAIN_AVG, &params,
                                   how == How::request ? &request : nullptr));
    int32_t one = 1, sum = 0;
    OK(dtrain_allreduce(comm, &one, &sum, 1, DTRAIN_I32, DTRAIN_SUM, nullptr, nullptr));
    REQUIRE(sum == dtrain_comm_size(comm));
    if (how == How::request) OK(dtrain_request_wait(request, -1));
    dtrain_request_free(request);
    if (how != How::queue) return;
    dtrain_event_t event;
    REQUIRE(dtrain_cq_poll(queue, &event, 1, -1) == 1);
    OK(event.status);
    OK(dtrain_cq_destroy(queue));
}

double distance(const std::vector<double> &a, const std::vector<double> &b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return std::sqrt(sum);
}

// What the results lack of the true means is what the ranks say they keep, divided by their number
// where it is of a rank's own vector.
void train(uint32_t kind, int size, size_t count, const ranks::Options &options) {
    std::vector<Vector> last(static_cast<size_t>(size));
    ranks::run_with_contexts(
        size, options, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            Compressor compressor = make(comm, params_of(kind, count));
            Vector mine(count), mean(count), result(count);
            std::vector<double> wanted(count), got(count);
            std::mt19937_64 random(uint64_t(rank) + 1);
            std::normal_distribution<float> normal;
            for (int step = 0; step < 6; step++) {
                for (float &x : mine) x = normal(random);
                OK(dtrain_allreduce(comm, mine.data(), mean.data(), count, DTRAIN_F32, DTRAIN_AVG,
                                    nullptr, nullptr));
                result = mine;
                reduce(context, comm, compressor, How(step % 3),
                       step % 2 ? result.data() : mine.data(), result.data());
                for (size_t i = 0; i < count; i++) {
                    wanted[i] += double(mean[i]);
                    got[i] += double(result[i]);
                }
            }
            dtrain_compression_stats_t s = stats(compressor);
            double kept = s.residual, all_kept = 0;
            OK(dtrain_allreduce(comm, &kept, &all_kept, 1, DTRAIN_F64, DTRAIN_SUM, nullptr,
                                nullptr));
            REQUIRE(distance(wanted, got) <= all_kept * 1.001 + 1e-3);
            REQUIRE(s.operations == 6 &&
                    s.raw_bytes == 6 * 8 * (count / size_t(size)) * size_t(size - 1));
            REQUIRE(size == 1 || count < 1000 || s.sent_bytes < s.raw_bytes);
            OK(dtrain_compressor_reset(compressor.get()));
            REQUIRE(stats(compressor).residual == 0);
            last[size_t(rank)] = result;
        });
    for (const Vector &result : last)
        REQUIRE(std::memcmp(result.data(), last[0].data(), count * sizeof(float)) == 0);
}

void inside_a_host(void **) {
    for (uint32_t kind : all_kinds)
        for (int size : {1, 2, 3, 4}) train(kind, size, 12 * 1000, {});
    for (uint32_t kind : all_kinds) train(kind, 2, 600'000, {});
    for (uint32_t kind : all_kinds) train(kind, 3, 3, {});
}
void over_tcp(void **) {
    for (uint32_t kind : all_kinds) train(kind, 3, 60'000, {{"transports", "tcp"}});
}
void progress_by_the_program(void **) {
    for (uint32_t kind : all_kinds) train(kind, 2, 4000, {{"progress", "manual"}});
}

// What top-k keeps comes with later steps: zeros flush it.
void nothing_is_lost(void **) {
    constexpr size_t count = 1000;
    ranks::run(3, {}, [](int rank, dtrain_comm_t *comm) {
        dtrain_compressor_params_t params = params_of(DTRAIN_COMPRESS_TOPK, count);
        params.ratio = 0.1;
        Compressor compressor = make(comm, params);
        Vector mine(count), result(count);
        std::vector<double> sum(count);
        for (size_t i = 0; i < count; i++) mine[i] = float((i * 7 + size_t(rank)) % 13) - 6;
        Vector given = mine;
        for (int step = 0; step < 10; step++) {
            OK(dtrain_compressor_allreduce(compressor.get(), mine.data(), result.data(), DTRAIN_SUM,
                                           nullptr, nullptr));
            for (size_t i = 0; i < count; i++) sum[i] += double(result[i]);
            std::fill(mine.begin(), mine.end(), 0.0f);
        }
        OK(dtrain_allreduce(comm, given.data(), result.data(), count, DTRAIN_F32, DTRAIN_SUM,
                            nullptr, nullptr));
        for (size_t i = 0; i < count; i++) REQUIRE(sum[i] == double(result[i]));
        REQUIRE(stats(compressor).residual == 0);
    });
}

void bad_input(void **) {
    ranks::run(2, {}, [](int, dtrain_comm_t *comm) {
        dtrain_compressor_params_t params = params_of(DTRAIN_COMPRESS_INT8, 0);
        dtrain_compressor_t *none = nullptr;
        FAILS(DTRAIN_ERR_INVALID, dtrain_compressor_create(comm, &params, &none)); // no count
        FAILS(DTRAIN_ERR_INVALID, dtrain_compressor_create(comm, nullptr, &none));
        FAILS(DTRAIN_ERR_INVALID, dtrain_compressor_create(nullptr, &params, &none));
        params.count = 8;
        FAILS(DTRAIN_ERR_INVALID, dtrain_compressor_create(comm, &params, nullptr));
        params.dtype = DTRAIN_F64;
        FAILS(DTRAIN_ERR_UNSUPPORTED, dtrain_compressor_create(comm, &params, &none));
        REQUIRE(none == nullptr);
        params.dtype = DTRAIN_F32;
        Compressor compressor = make(comm, params);
        float x[8] = {}, y[12] = {};
        auto allreduce = [&](const float *send, float *recv, uint32_t op, double scale) {
            dtrain_op_params_t op_params;
            DTRAIN_INIT(&op_params);
            op_params.prescale = scale;
            return dtrain_compressor_allreduce(compressor.get(), send, recv, op, &op_params,
                                               nullptr);
        };
        FAILS(DTRAIN_ERR_INVALID, allreduce(nullptr, y, DTRAIN_SUM, 0));
        FAILS(DTRAIN_ERR_INVALID, allreduce(x, nullptr, DTRAIN_SUM, 0));
        FAILS(DTRAIN_ERR_INVALID, allreduce(y, y + 4, DTRAIN_SUM, 0)); // they overlap
        FAILS(DTRAIN_ERR_UNSUPPORTED, allreduce(x, y, DTRAIN_MAX, 0));
        FAILS(DTRAIN_ERR_UNSUPPORTED, allreduce(x, y, DTRAIN_SUM, 2));
        FAILS(DTRAIN_ERR_INVALID, dtrain_compressor_stats(compressor.get(), nullptr));
        FAILS(DTRAIN_ERR_INVALID, dtrain_compressor_reset(nullptr));
        FAILS(DTRAIN_ERR_INVALID,
              dtrain_compressor_allreduce(nullptr, x, y, DTRAIN_SUM, nullptr, nullptr));
        OK(dtrain_compressor_destroy(nullptr));
        OK(allreduce(x, y, DTRAIN_SUM, 0)); // nothing is broken
    });
}

void ranks_that_differ(void **) {
    ranks::run(3, {}, [](int rank, dtrain_comm_t *comm) {
        dtrain_compressor_params_t params = params_of(DTRAIN_COMPRESS_TOPK, 100);
        params.ratio = rank == 1 ? 0.2 : 0.1;
        dtrain_compressor_t *compressor = nullptr;
        FAILS(DTRAIN_ERR_MISMATCH, dtrain_compressor_create(comm, &params, &compressor));
        params.ratio = 0.1;
        Compressor good = make(comm, params);
        Vector x(100, 1.0f);
        FAILS(DTRAIN_ERR_MISMATCH,
              dtrain_compressor_allreduce(good.get(), x.data(), x.data(),
                                          rank == 1 ? DTRAIN_SUM : DTRAIN_AVG, nullptr, nullptr));
        OK(dtrain_barrier(comm, nullptr, nullptr)); // the user's communicator is as it was
    });
}

// Rank 1 calls only when rank 0 has seen that it cannot call again, nor look.
void one_at_a_time(void **) {
    ranks::run(2, {}, [](int rank, dtrain_comm_t *comm) {
        Compressor compressor = make(comm, params_of(DTRAIN_COMPRESS_F16, 50));
        Vector x(50, 1.0f), y(50);
        dtrain_request_t *request = nullptr;
        dtrain_compression_stats_t s;
        if (rank == 1) OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_compressor_allreduce(compressor.get(), x.data(), y.data(), DTRAIN_SUM, nullptr,
                                       &request));
        if (rank == 0) {
            FAILS(DTRAIN_ERR_BUSY, dtrain_compressor_allreduce(compressor.get(), x.data(), y.data(),
                                                               DTRAIN_SUM, nullptr, nullptr));
            FAILS(DTRAIN_ERR_BUSY, dtrain_compressor_reset(compressor.get()));
            FAILS(DTRAIN_ERR_BUSY, dtrain_compressor_stats(compressor.get(), &s));
            OK(dtrain_barrier(comm, nullptr, nullptr));
        }
        OK(dtrain_request_wait(request, -1));
        dtrain_request_free(request);
        REQUIRE(y[49] == 2);
        OK(dtrain_compressor_allreduce(compressor.get(), x.data(), y.data(), DTRAIN_SUM, nullptr,
                                       nullptr));
    });
}

// Nobody else calls: it ends by its timeout, or by being destroyed.
void early_ends(void **) {
    for (uint32_t kind : all_kinds)
        ranks::run(2, {}, [kind](int rank, dtrain_comm_t *comm) {
            Compressor left = make(comm, params_of(kind, 5000)),
                       late = make(comm, params_of(kind, 5000));
            Vector x(5000, 1.0f), y(5000);
            if (rank == 0) {
                dtrain_request_t *request = nullptr;
                OK(dtrain_compressor_allreduce(left.get(), x.data(), y.data(), DTRAIN_SUM, nullptr,
                                               &request));
                left.reset();
                FAILS(DTRAIN_ERR_CANCELED, dtrain_request_wait(request, -1));
                dtrain_request_free(request);
                dtrain_op_params_t params;
                DTRAIN_INIT(&params);
                params.timeout_ns = 50'000'000;
                FAILS(DTRAIN_ERR_TIMEOUT,
                      dtrain_compressor_allreduce(late.get(), x.data(), y.data(), DTRAIN_SUM,
                                                  &params, nullptr));
            }
            OK(dtrain_barrier(comm, nullptr, nullptr));
        });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(inside_a_host),
        cmocka_unit_test(over_tcp),
        cmocka_unit_test(progress_by_the_program),
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(ranks_that_differ),
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(early_ends),
    };
    return cmocka_run_group_tests_name("compression", tests, nullptr, nullptr);
}
