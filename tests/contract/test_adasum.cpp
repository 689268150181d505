// Adasum against a naive reference: any number of ranks, every way to call it.
// SPDX-License-Identifier: Apache-2.0
#include "contract/collective_case.h"
#include "contract/ranks.h"

#include <bit>
#include <cmath>

namespace {

using Vector = std::vector<double>;

double dot(const Vector &a, const Vector &b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); i++) sum += a[i] * b[i];
    return sum;
}

Vector combine(const Vector &a, const Vector &b) {
    double aa = dot(a, a), bb = dot(b, b), ab = dot(a, b);
    double x = aa == 0 ? 1 : 1 - ab / (2 * aa), y = bb == 0 ? 1 : 1 - ab / (2 * bb);
    Vector sum(a.size());
    for (size_t i = 0; i < a.size(); i++) sum[i] = x * a[i] + y * b[i];
    return sum;
}

// The surplus over a power of two is combined in pairs first; then a binary tree of neighbors.
Vector reference(std::vector<Vector> vectors) {
    size_t extra = vectors.size() - std::bit_floor(vectors.size());
    std::vector<Vector> left;
    for (size_t i = 0; i < extra; i++) left.push_back(combine(vectors[2 * i], vectors[2 * i + 1]));
    left.insert(left.end(), vectors.begin() + long(2 * extra), vectors.end());
    while (left.size() > 1) {
        for (size_t i = 0; i < left.size() / 2; i++)
            left[i] = combine(left[2 * i], left[2 * i + 1]);
        left.resize(left.size() / 2);
    }
    return left[0];
}

struct Numbers { // in a dtype
    explicit Numbers(uint32_t the_dtype, size_t count)
        : dtype(the_dtype), bytes(count * dtrain_dtype_size(the_dtype)) {}
    double get(size_t i) const {
        if (dtype == DTRAIN_F64) return as<double>(i);
        if (dtype == DTRAIN_F32) return double(as<float>(i));
        auto half = as<uint16_t>(i);
        if (dtype == DTRAIN_BF16) return double(std::bit_cast<float>(uint32_t(half) << 16));
        double size = std::ldexp((half & 0x3ff) + (half & 0x7c00 ? 1024 : 0),
                                 std::max((half >> 10) & 31, 1) - 25);
        return half & 0x8000 ? -size : size;
    }
    template <class T> T as(size_t i) const {
        T value;
        std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
        return value;
    }
    Vector values() const {
        Vector all(bytes.size() / dtrain_dtype_size(dtype));
        for (size_t i = 0; i < all.size(); i++) all[i] = get(i);
        return all;
    }
    uint32_t dtype;
    std::vector<uint8_t> bytes;
};

Numbers input(int rank, size_t count, uint32_t dtype) {
    Numbers numbers(dtype, count);
    for (size_t i = 0; i < count; i++)
        cases::write(numbers.bytes.data(), i, dtype,
                     int64_t(cases::hash(uint64_t(rank) << 32 | i) % 33) - 12);
    return numbers;
}

struct Result {
    std::vector<Numbers> of_ranks;
    Vector expected;
};

void compare(const Result &result, double tolerance) {
    double norm = std::sqrt(dot(result.expected, result.expected) /
                            std::max<double>(1, double(result.expected.size())));
    for (const Numbers &numbers : result.of_ranks) {
        REQUIRE(numbers.bytes == result.of_ranks[0].bytes);
        Vector got = numbers.values();
        for (size_t i = 0; i < got.size(); i++)
            REQUIRE(std::fabs(got[i] - result.expected[i]) <=
                    tolerance * (norm + std::fabs(result.expected[i])));
    }
}

double tolerance(uint32_t dtype) {
    return dtype == DTRAIN_F64   ? 1e-12
           : dtype == DTRAIN_F32 ? 1e-5
           : dtype == DTRAIN_F16 ? 4e-3
                                 : 3e-2;
}

// Blocking on even ranks and, in place, with a request on odd ones, all at once with a sum.
void check(int size, size_t count, uint32_t dtype, const ranks::Options &options) {
    Result result{{size_t(size), Numbers(dtype, count)}, {}};
    std::vector<Vector> inputs;
    for (int rank = 0; rank < size; rank++) inputs.push_back(input(rank, count, dtype).values());
    result.expected = reference(inputs);
    ranks::run(size, options, [&](int rank, dtrain_comm_t *comm) {
        Numbers mine = input(rank, count, dtype);
        Numbers &out = result.of_ranks[size_t(rank)];
        int32_t one = 1, sum = 0;
        if (rank % 2 == 0) {
            OK(dtrain_allreduce(comm, mine.bytes.data(), out.bytes.data(), count, dtype,
                                DTRAIN_ADASUM, nullptr, nullptr));
            OK(dtrain_allreduce(comm, &one, &sum, 1, DTRAIN_I32, DTRAIN_SUM, nullptr, nullptr));
            REQUIRE(mine.bytes == input(rank, count, dtype).bytes);
        } else {
            dtrain_request_t *request = nullptr;
            out = mine;
            OK(dtrain_allreduce(comm, out.bytes.data(), out.bytes.data(), count, dtype,
                                DTRAIN_ADASUM, nullptr, &request));
            OK(dtrain_allreduce(comm, &one, &sum, 1, DTRAIN_I32, DTRAIN_SUM, nullptr, nullptr));
            OK(dtrain_request_wait(request, -1));
            dtrain_request_free(request);
        }
        REQUIRE(sum == size);
    });
    compare(result, tolerance(dtype));
}

void any_number_of_ranks(void **) {
    for (int size = 1; size <= 9; size++)
        for (size_t count : {1, 7, 1000}) check(size, count, DTRAIN_F32, {});
}
void all_dtypes(void **) {
    for (uint32_t dtype : {DTRAIN_F32, DTRAIN_F64, DTRAIN_F16, DTRAIN_BF16})
        for (size_t count : {0, 13, 4099}) check(4, count, dtype, {});
}
void over_tcp_in_small_chunks(void **) {
    for (int size : {2, 3, 5, 8})
        check(size, 20011, DTRAIN_F32, {{"transports", "tcp"}, {"chunk.bytes", "4096"}});
}
void progress_by_the_program(void **) { check(4, 5000, DTRAIN_F32, {{"progress", "manual"}}); }

// By hand: parallel vectors are averaged, orthogonal ones added, zeros change nothing.
void its_properties(void **) {
    const float expected[3][2] = {{2, 4}, {3, 5}, {1, 7}};
    const float inputs[3][2][2] = {{{2, 4}, {2, 4}}, {{3, 0}, {0, 5}}, {{1, 7}, {0, 0}}};
    ranks::run(2, {}, [&](int rank, dtrain_comm_t *comm) {
        for (int i = 0; i < 3; i++) {
            float mine[2] = {inputs[i][rank][0], inputs[i][rank][1]};
            OK(dtrain_allreduce(comm, mine, mine, 2, DTRAIN_F32, DTRAIN_ADASUM, nullptr, nullptr));
            REQUIRE(mine[0] == expected[i][0] && mine[1] == expected[i][1]);
        }
        float bad[2] = {rank == 0 ? NAN : 1, 2};
        OK(dtrain_allreduce(comm, bad, bad, 2, DTRAIN_F32, DTRAIN_ADASUM, nullptr, nullptr));
        REQUIRE(std::isnan(bad[0]) && std::isnan(bad[1]));
    });
}

void what_it_is_not_for(void **) {
    ranks::run(2, {}, [](int, dtrain_comm_t *comm) {
        float f[4] = {};
        int32_t n[4] = {};
        FAILS(DTRAIN_ERR_UNSUPPORTED,
              dtrain_allreduce(comm, n, n, 2, DTRAIN_I32, DTRAIN_ADASUM, nullptr, nullptr));
        FAILS(DTRAIN_ERR_UNSUPPORTED,
              dtrain_reduce(comm, f, f, 2, DTRAIN_F32, DTRAIN_ADASUM, 0, nullptr, nullptr));
        FAILS(DTRAIN_ERR_UNSUPPORTED, dtrain_reduce_scatter(comm, f, f + 2, 1, DTRAIN_F32,
                                                            DTRAIN_ADASUM, nullptr, nullptr));
        FAILS(DTRAIN_ERR_INVALID,
              dtrain_allreduce(comm, f, f, 2, DTRAIN_F32, DTRAIN_ADASUM + 1, nullptr, nullptr));
        OK(dtrain_barrier(comm, nullptr, nullptr)); // nothing is broken
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_ranks),      cmocka_unit_test(all_dtypes),
        cmocka_unit_test(over_tcp_in_small_chunks), cmocka_unit_test(progress_by_the_program),
        cmocka_unit_test(its_properties),           cmocka_unit_test(what_it_is_not_for),
    };
    return cmocka_run_group_tests_name("adasum", tests, nullptr, nullptr);
}
