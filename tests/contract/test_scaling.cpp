// Pre- and post-scaling of reductions against the plain formula.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include <cmath>

namespace {

dtrain_op_params_t scaled(double before, double after) {
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    params.prescale = before;
    params.postscale = after;
    return params;
}

// Small integers and factors for which f16 is exact.
float value(int rank, size_t i) { return float((i * 5 + size_t(rank) * 3) % 7) - 3; }
double before(int rank) { return rank % 2 == 0 ? 2 : -0.5; }
constexpr double after = 0.25;

float expected(int size, size_t i, bool maximum = false) {
    double folded = before(0) * double(value(0, i));
    for (int r = 1; r < size; r++) {
        double x = before(r) * double(value(r, i));
        folded = maximum ? std::fmax(folded, x) : folded + x;
    }
    return float(folded * after);
}

struct Vector {
    std::vector<uint8_t> bytes;
    uint32_t dtype;
    Vector(uint32_t the_dtype, size_t count)
        : bytes(count * dtrain_dtype_size(the_dtype)), dtype(the_dtype) {}
    void set(size_t i, float x) {
        double d = x;
        uint32_t bits;
        std::memcpy(&bits, &x, 4);
        if (dtype == DTRAIN_F32) std::memcpy(&bytes[4 * i], &x, 4);
        if (dtype == DTRAIN_F64) std::memcpy(&bytes[8 * i], &d, 8);
        if (dtype == DTRAIN_BF16)
            std::memcpy(&bytes[2 * i], reinterpret_cast<char *>(&bits) + 2, 2);
    }
    float get(size_t i) const {
        float f = 0;
        double d = 0;
        if (dtype == DTRAIN_F64) return std::memcpy(&d, &bytes[8 * i], 8), float(d);
        if (dtype == DTRAIN_F32) return std::memcpy(&f, &bytes[4 * i], 4), f;
        return std::memcpy(reinterpret_cast<char *>(&f) + 2, &bytes[2 * i], 2), f;
    }
    void *data() { return bytes.data(); }
};

Vector input(int rank, size_t count, uint32_t dtype) {
    Vector v(dtype, count);
    for (size_t i = 0; i < count; i++) v.set(i, value(rank, i));
    return v;
}

void check(const Vector &got, size_t first, size_t count, int size, bool maximum = false) {
    for (size_t i = 0; i < count; i++) REQUIRE(got.get(i) == expected(size, first + i, maximum));
}

enum class How { blocking, request, queue };

template <class Post> void run(How how, dtrain_context_t *context, int rank, Post &&post) {
    dtrain_op_params_t params = scaled(before(rank), after);
    dtrain_request_t *request = nullptr;
    dtrain_cq_t *queue = nullptr;
    dtrain_event_t event;
    if (how == How::queue) {
        OK(dtrain_cq_create(context, 0, &queue));
        params.cq = queue;
    }
    OK(post(&params, how == How::request ? &request : nullptr));
    if (how == How::request) OK(dtrain_request_wait(request, -1));
    dtrain_request_free(request);
    if (how != How::queue) return;
    REQUIRE(dtrain_cq_poll(queue, &event, 1, -1) == 1);
    OK(event.status);
    OK(dtrain_cq_destroy(queue));
}

void every_reduction(int size, size_t count, uint32_t dtype, How how,
                     const ranks::Options &options) {
    ranks::run_with_contexts(
        size, options, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            Vector mine = input(rank, count, dtype), out(dtype, count), kept = mine;
            auto go = [&](auto &&post) { run(how, context, rank, post); };
            go([&](auto *p, auto **r) {
                return dtrain_allreduce(comm, mine.data(), out.data(), count, dtype, DTRAIN_SUM, p,
                                        r);
            });
            check(out, 0, count, size);
            REQUIRE(mine.bytes == kept.bytes);
            go([&](auto *p, auto **r) {
                return dtrain_allreduce(comm, mine.data(), mine.data(), count, dtype, DTRAIN_MAX, p,
                                        r);
            });
            check(mine, 0, count, size, true);
            mine = kept;
            int root = size - 1;
            go([&](auto *p, auto **r) {
                return dtrain_reduce(comm, mine.data(), rank == root ? out.data() : nullptr, count,
                                     dtype, DTRAIN_SUM, root, p, r);
            });
            if (rank == root) check(out, 0, count, size);
            REQUIRE(mine.bytes == kept.bytes);
            size_t each = count / size_t(size), first = each * size_t(rank);
            go([&](auto *p, auto **r) {
                return dtrain_reduce_scatter(comm, mine.data(), out.data(), each, dtype, DTRAIN_SUM,
                                             p, r);
            });
            check(out, first, each, size);
            REQUIRE(mine.bytes == kept.bytes);
            std::vector<uint64_t> counts(size_t(size), each);
            uint8_t *own = mine.bytes.data() + first * dtrain_dtype_size(dtype);
            go([&](auto *p, auto **r) {
                return dtrain_reduce_scatterv(comm, mine.data(), own, counts.data(), dtype,
                                              DTRAIN_SUM, p, r);
            });
            for (size_t i = 0; i < each; i++)
                REQUIRE(mine.get(first + i) == expected(size, first + i));
        });
}

void blocking(void **) {
    for (int size : {1, 2, 3, 5})
        for (size_t count : {15u, 60u, 30000u})
            every_reduction(size, count, DTRAIN_F32, How::blocking, {});
    every_reduction(3, 60, DTRAIN_F64, How::blocking, {});
    every_reduction(3, 60, DTRAIN_BF16, How::blocking, {});
}
void with_a_request(void **) {
    every_reduction(3, 60, DTRAIN_F32, How::request, {});
    every_reduction(4, 600'000, DTRAIN_F32, How::request, {});
    every_reduction(2, 600'000, DTRAIN_BF16, How::request, {{"transports", "tcp"}});
}
void with_a_queue(void **) { every_reduction(3, 3000, DTRAIN_F64, How::queue, {}); }

// f16 could not hold the sum of what is given, but holds its mean.
void prescaling_keeps_sums_in_range(void **) {
    ranks::run(4, {}, [](int, dtrain_comm_t *comm) {
        uint16_t x = 0x7800; // 32768
        dtrain_op_params_t params = scaled(0.25, 0);
        OK(dtrain_allreduce(comm, &x, &x, 1, DTRAIN_F16, DTRAIN_SUM, &params, nullptr));
        REQUIRE(x == 0x7800);
    });
}

void bad_factors(void **) {
    ranks::run(2, {}, [](int, dtrain_comm_t *comm) {
        float f[4] = {1, 2, 3, 4};
        int32_t n[4] = {};
        auto p = [](double a, double b) {
            static thread_local dtrain_op_params_t params;
            params = scaled(a, b);
            return &params;
        };
        FAILS(DTRAIN_ERR_INVALID,
              dtrain_allreduce(comm, f, f, 2, DTRAIN_F32, DTRAIN_SUM, p(NAN, 0), nullptr));
        FAILS(DTRAIN_ERR_INVALID,
              dtrain_allreduce(comm, f, f, 2, DTRAIN_F32, DTRAIN_SUM, p(0, INFINITY), nullptr));
        FAILS(DTRAIN_ERR_UNSUPPORTED,
              dtrain_allreduce(comm, n, n, 2, DTRAIN_I32, DTRAIN_SUM, p(2, 0), nullptr));
        FAILS(DTRAIN_ERR_UNSUPPORTED,
              dtrain_broadcast(comm, f, 2, DTRAIN_F32, 0, p(2, 0), nullptr));
        FAILS(DTRAIN_ERR_UNSUPPORTED, dtrain_send(comm, f, 2, DTRAIN_F32, 0, 0, p(0, 2), nullptr));
        FAILS(DTRAIN_ERR_INVALID,
              dtrain_allreduce(comm, nullptr, f, 2, DTRAIN_F32, DTRAIN_SUM, p(2, 0), nullptr));
        OK(dtrain_barrier(comm, nullptr, nullptr));
        REQUIRE(f[0] == 1 && f[3] == 4);
    });
}

// A factor of 0 is one when it is said to be meant: who has no samples adds nothing.
void a_factor_of_zero(void **) {
    ranks::run(2, {}, [](int rank, dtrain_comm_t *comm) {
        for (bool given : {false, true}) {
            float f[2] = {1, 2};
            dtrain_op_params_t params = scaled(rank == 0 ? 2 : 0, 1);
            if (given) params.flags = DTRAIN_OP_FACTORS;
            OK(dtrain_allreduce(comm, f, f, 2, DTRAIN_F32, DTRAIN_SUM, &params, nullptr));
            REQUIRE(f[0] == (given ? 2 : 3) && f[1] == (given ? 4 : 6));
        }
        float f[2] = {1, 2};
        dtrain_request_t *request = nullptr;
        dtrain_op_params_t params = scaled(1, 0);
        params.flags = DTRAIN_OP_FACTORS | DTRAIN_OP_AWAITED;
        OK(dtrain_allreduce(comm, f, f, 2, DTRAIN_F32, DTRAIN_SUM, &params, &request));
        OK(dtrain_request_wait(request, -1));
        dtrain_request_free(request);
        REQUIRE(f[0] == 0 && f[1] == 0);
        params.flags = DTRAIN_OP_FACTORS;
        FAILS(DTRAIN_ERR_UNSUPPORTED, dtrain_barrier(comm, &params, nullptr));
        params.flags = 8;
        FAILS(DTRAIN_ERR_UNSUPPORTED,
              dtrain_allreduce(comm, f, f, 2, DTRAIN_F32, DTRAIN_SUM, &params, nullptr));
    });
}

// Ranks would keep different results.
void postscales_that_differ(void **) {
    ranks::run(2, {}, [](int rank, dtrain_comm_t *comm) {
        float f[2] = {1, 2};
        dtrain_op_params_t params = scaled(0, rank + 2);
        FAILS(DTRAIN_ERR_MISMATCH,
              dtrain_allreduce(comm, f, f, 2, DTRAIN_F32, DTRAIN_SUM, &params, nullptr));
        REQUIRE(ranks::last_error().find("postscale by 3") != std::string::npos);
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(blocking),
        cmocka_unit_test(with_a_request),
        cmocka_unit_test(with_a_queue),
        cmocka_unit_test(prescaling_keeps_sums_in_range),
        cmocka_unit_test(bad_factors),
        cmocka_unit_test(a_factor_of_zero),
        cmocka_unit_test(postscales_that_differ),
    };
    return cmocka_run_group_tests_name("scaling", tests, nullptr, nullptr);
}
