// DTRAIN_AVG of every dtype against exact arithmetic: values from one end of the dtype to the
// other, over every way, algorithm and kind of call. A seed chooses the values (DTRAIN_TEST_SEED).
// SPDX-License-Identifier: Apache-2.0
#include "contract/algorithms.h"
#include "contract/ranks.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>

namespace {

using Wide = __int128;

uint64_t seed() {
    const char *text = std::getenv("DTRAIN_TEST_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
}

constexpr const char *dtype_names[] = {"",    "f32", "f64", "f16", "bf16", "i8", "u8",
                                       "i16", "u16", "i32", "u32", "i64",  "u64"};
bool is_float(uint32_t dtype) { return dtype <= DTRAIN_BF16; }
bool has_sign(uint32_t dtype) { return is_float(dtype) || dtype % 2 == 1; } // i8 is 5, u8 is 6, ...

struct Format { // of a float
    int mantissa, least;
    double greatest;
};
Format format_of(uint32_t dtype) {
    switch (dtype) {
    case DTRAIN_F32: return {23, -149, FLT_MAX};
    case DTRAIN_F64: return {52, -1074, DBL_MAX};
    case DTRAIN_F16: return {10, -24, 65504};
    default: return {7, -133, 0x1.fep127};
    }
}

// One element, from its bytes, and into them where it is exact.
long double get_float(uint32_t dtype, const uint8_t *at) {
    float f = 0;
    double d;
    uint16_t half;
    switch (dtype) {
    case DTRAIN_F32: return std::memcpy(&f, at, 4), f;
    case DTRAIN_F64: return std::memcpy(&d, at, 8), d;
    case DTRAIN_BF16: return std::memcpy(reinterpret_cast<char *>(&f) + 2, at, 2), f;
    default: break;
    }
    std::memcpy(&half, at, 2);
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 31) return fraction ? NAN : half >> 15 ? -INFINITY : INFINITY;
    const double size =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
    return half >> 15 ? -size : size;
}

Wide get_integer(uint32_t dtype, const uint8_t *at) {
    const size_t bits = 8 * dtrain_dtype_size(dtype);
    uint64_t value = 0;
    std::memcpy(&value, at, bits / 8); // little endian
    const bool negative = has_sign(dtype) && value >> (bits - 1);
    return negative ? Wide(value) - (Wide(1) << bits) : Wide(value);
}

struct Case {
    uint32_t dtype;
    int size;
    uint64_t count; // of the whole vector

    // Random bits: from one end of the dtype to the other; of floats finite ones.
    std::vector<uint8_t> input(int rank) const {
        std::mt19937_64 random(seed() * 1000003 + uint64_t(rank) * 7919 + dtype);
        const size_t element = dtrain_dtype_size(dtype);
        std::vector<uint8_t> bytes(element * count);
        for (uint64_t i = 0; i < count; i++) {
            uint8_t *at = &bytes[i * element];
            uint64_t bits = random();
            if (i % 7 < 3) { // all ranks alike: the ends
                const uint64_t sign = uint64_t{1} << (8 * element - 1);
                const uint64_t of_integers[] = {sign - 1, sign, UINT64_MAX};
                const uint64_t of_f16[] = {0x7bff, 0xfbff, 0x0001};
                bits = dtype == DTRAIN_F16 ? of_f16[i % 7] : of_integers[i % 7];
            }
            std::memcpy(at, &bits, element);
            if (!is_float(dtype)) continue;
            // Of f32, f64 and bf16 the sum itself has to be in range.
            const long double most = dtype == DTRAIN_F16 ? 65504.0L : format_of(dtype).greatest / 8;
            if (std::fabs(get_float(dtype, at)) <= most) continue;
            const uint64_t one[] = {0, 0x3f812345, 0x3ff0123456789abc, 0x3c01, 0x3f81};
            std::memcpy(at, &one[dtype], element);
        }
        return bytes;
    }
};

class Reference {
  public:
    explicit Reference(const Case &c) : c_(c) {
        for (int r = 0; r < c.size; r++) inputs_.push_back(c.input(r));
    }
    const std::vector<uint8_t> &input(int rank) const { return inputs_[size_t(rank)]; }

    // `got` is the average of element i.
    bool is_right(uint64_t i, const uint8_t *got) const {
        return is_float(c_.dtype) ? is_near(i, get_float(c_.dtype, got))
                                  : mean(i) == get_integer(c_.dtype, got);
    }

  private:
    const uint8_t *at(int rank, uint64_t i) const {
        return &inputs_[size_t(rank)][i * dtrain_dtype_size(c_.dtype)];
    }
    Wide mean(uint64_t i) const {
        Wide sum = 0;
        for (int r = 0; r < c_.size; r++) sum += get_integer(c_.dtype, at(r, i));
        return sum / c_.size;
    }
    // Within what the roundings of sums, however they are made, and of the quotient allow. f16 is
    // added up in f32 and rounded once.
    bool is_near(uint64_t i, long double got) const {
        long double sum = 0, magnitudes = 0;
        for (int r = 0; r < c_.size; r++) {
            sum += get_float(c_.dtype, at(r, i));
            magnitudes += std::fabs(get_float(c_.dtype, at(r, i)));
        }
        const Format f = format_of(c_.dtype);
        const int sum_mantissa = c_.dtype == DTRAIN_F16 ? 23 : f.mantissa;
        const long double exact = sum / c_.size,
                          of_sums = magnitudes * std::ldexp(1.0L, -sum_mantissa),
                          of_result = std::ldexp(std::fabs(exact), -f.mantissa - 1) +
                                      std::ldexp(1.0L, f.least - 1);
        return std::isfinite(got) && std::fabs(got - exact) <= of_sums + of_result * 1.01L;
    }

    const Case c_;
    std::vector<std::vector<uint8_t>> inputs_;
};

void check(const Case &c, const Reference &reference, const char *what, uint64_t first,
           const std::vector<uint8_t> &got) {
    const size_t element = dtrain_dtype_size(c.dtype);
    for (uint64_t i = 0; i < got.size() / element; i++) {
        if (reference.is_right(first + i, &got[i * element])) continue;
        uint64_t bits = 0;
        std::memcpy(&bits, &got[i * element], element);
        std::fprintf(
            stderr, "%s of %s, %d ranks, %llu elements: element %llu is %#llx, seed %llu\n", what,
            dtype_names[c.dtype], c.size, static_cast<unsigned long long>(c.count),
            static_cast<unsigned long long>(first + i), static_cast<unsigned long long>(bits),
            static_cast<unsigned long long>(seed()));
        std::abort();
    }
}

enum class How { blocking, request, queue, persistent };

template <class Post> void run(How how, dtrain_context_t *context, uint64_t bytes, Post &&post) {
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    dtrain_request_t *request = nullptr;
    dtrain_cq_t *queue = nullptr;
    dtrain_event_t event;
    const dtrain_op_params_t *no_params = nullptr;
    dtrain_request_t **no_request = nullptr;
    if (how == How::blocking) return OK(post(no_params, no_request));
    if (how == How::queue) {
        OK(dtrain_cq_create(context, 0, &queue));
        params.cq = queue;
        OK(post(&params, no_request));
        REQUIRE(dtrain_cq_poll(queue, &event, 1, -1) == 1);
        OK(event.status);
        REQUIRE(event.bytes == bytes);
        return OK(dtrain_cq_destroy(queue));
    }
    if (how == How::persistent) params.flags = DTRAIN_OP_PERSISTENT;
    OK(post(&params, &request));
    for (int i = 0; how == How::persistent && i < 2; i++) {
        OK(dtrain_request_start(&request, 1));
        OK(dtrain_request_wait(request, -1));
    }
    OK(dtrain_request_wait(request, -1));
    dtrain_request_free(request);
}

// Every kind of call on one rank.
void every_kind(const Case &c, const Reference &reference, How how, int rank,
                dtrain_context_t *context, dtrain_comm_t *comm,
                std::vector<std::vector<uint8_t>> &everybody) {
    const size_t element = dtrain_dtype_size(c.dtype);
    const std::vector<uint8_t> &mine = reference.input(rank);
    std::vector<uint8_t> out(mine.size()), in_place = mine;
    const auto size = uint64_t(c.size);
    auto go = [&](uint64_t bytes, auto &&post) { run(how, context, bytes, post); };
    go(mine.size(), [&](auto *p, auto **r) {
        return dtrain_allreduce(comm, mine.data(), out.data(), c.count, c.dtype, DTRAIN_AVG, p, r);
    });
    check(c, reference, "allreduce", 0, out);
    everybody[size_t(rank)] = out;
    if (how != How::persistent) {
        go(mine.size(), [&](auto *p, auto **r) {
            return dtrain_allreduce(comm, in_place.data(), in_place.data(), c.count, c.dtype,
                                    DTRAIN_AVG, p, r);
        });
        check(c, reference, "allreduce in place", 0, in_place);
    }
    const int root = c.size - 1;
    std::fill(out.begin(), out.end(), uint8_t{0x5a});
    go(rank == root ? mine.size() : 0, [&](auto *p, auto **r) {
        return dtrain_reduce(comm, mine.data(), rank == root ? out.data() : nullptr, c.count,
                             c.dtype, DTRAIN_AVG, root, p, r);
    });
    if (rank == root) check(c, reference, "reduce", 0, out);
    const uint64_t each = c.count / size;
    out.assign(each * element, 0);
    go(out.size(), [&](auto *p, auto **r) {
        return dtrain_reduce_scatter(comm, mine.data(), out.data(), each, c.dtype, DTRAIN_AVG, p,
                                     r);
    });
    check(c, reference, "reduce_scatter", each * uint64_t(rank), out);
    std::vector<uint64_t> counts;
    for (uint64_t r = 0; r < size; r++) counts.push_back(r % 2 ? each / 2 : each);
    uint64_t first = 0;
    for (int r = 0; r < rank; r++) first += counts[size_t(r)];
    out.assign(counts[size_t(rank)] * element, 0);
    go(out.size(), [&](auto *p, auto **r) {
        return dtrain_reduce_scatterv(comm, mine.data(), out.data(), counts.data(), c.dtype,
                                      DTRAIN_AVG, p, r);
    });
    check(c, reference, "reduce_scatterv", first, out);
}

void every_dtype(int size, const std::vector<uint64_t> &bytes, const ranks::Options &options) {
    struct Run {
        Case c;
        Reference reference;
        std::vector<std::vector<uint8_t>> results;
    };
    std::vector<Run> runs;
    for (uint32_t dtype = DTRAIN_F32; dtype <= DTRAIN_U64; dtype++)
        for (uint64_t length : bytes) {
            const Case c = {dtype, size, length / dtrain_dtype_size(dtype)};
            runs.push_back({c, Reference(c), std::vector<std::vector<uint8_t>>(size_t(size))});
        }
    ranks::run_with_contexts(
        size, options, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            int turn = 0;
            for (Run &r : runs)
                every_kind(r.c, r.reference, How(turn++ % 4), rank, context, comm, r.results);
        });
    for (const Run &r : runs)
        for (const auto &result : r.results) REQUIRE(result == r.results[0]);
}

// Sizes on both sides of where another way begins.
void in_shared_memory(void **) {
    const std::vector<uint64_t> little = {0, 8, 48, 56, 16384, 16392},
                                more = {8, 4096, 65536, 65544};
    for (int size = 1; size <= 7; size++) every_dtype(size, size % 2 ? little : more, {});
    every_dtype(3, {600'000}, {{"window.bytes", "64K"}});
}
void over_tcp(void **) {
    for (int size = 1; size <= 7; size++)
        every_dtype(size, {8, 1000, 33'000}, {{"transports", "tcp"}});
    every_dtype(3, {600'000}, {{"transports", "tcp"}, {"chunk.bytes", "16K"}});
}
void by_every_algorithm(void **) {
    for (const std::string &name : tested_algorithms()) {
        every_dtype(3, {33'000}, {{"allreduce.algorithm", name}});
        every_dtype(6, {33'000}, {{"allreduce.algorithm", name}, {"transports", "tcp"}});
    }
}
void over_several_hosts(void **) { // that the ranks say to be on
    for (const char *name : {"hierarchical", "hierarchical_tree"})
        ranks::run_each(
            6, 0,
            [&](int rank) -> ranks::Options {
                return {{"transports", "tcp"},
                        {"topology", "host" + std::to_string(rank / 2)},
                        {"allreduce.algorithm", name}};
            },
            [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                for (uint32_t dtype = DTRAIN_F32; dtype <= DTRAIN_U64; dtype++) {
                    const Case c = {dtype, 6, 5000};
                    const Reference reference(c);
                    std::vector<std::vector<uint8_t>> results(6);
                    every_kind(c, reference, How(dtype % 4), rank, context, comm, results);
                }
            });
}

// Where all ranks share the buffers they add up where the buffers are.
void in_shared_buffers(void **) {
    for (int size : {2, 5})
        ranks::run_with_contexts(
            size, {}, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                for (uint32_t dtype = DTRAIN_F32; dtype <= DTRAIN_U64; dtype++) {
                    const size_t element = dtrain_dtype_size(dtype);
                    const Case c = {dtype, size, 200'000 / element};
                    const Reference reference(c);
                    const std::vector<uint8_t> &mine = reference.input(rank);
                    dtrain_mem_t *send = nullptr, *recv = nullptr;
                    OK(dtrain_mem_alloc(context, mine.size(), &send));
                    OK(dtrain_mem_alloc(context, mine.size(), &recv));
                    std::memcpy(dtrain_mem_address(send), mine.data(), mine.size());
                    OK(dtrain_allreduce(comm, dtrain_mem_address(send), dtrain_mem_address(recv),
                                        c.count, dtype, DTRAIN_AVG, nullptr, nullptr));
                    auto *result = static_cast<uint8_t *>(dtrain_mem_address(recv));
                    check(c, reference, "allreduce of shared buffers", 0,
                          {result, result + mine.size()});
                    OK(dtrain_mem_deregister(send));
                    OK(dtrain_mem_deregister(recv));
                }
            });
}

// An operation made of operations: the sum, its quotient, its factor.
void with_factors(void **) {
    for (const char *transports : {"shm,tcp", "tcp"})
        ranks::run_with_contexts(
            4, {{"transports", transports}},
            [](int, dtrain_context_t *context, dtrain_comm_t *comm) {
                for (How how : {How::request, How::queue, How::persistent}) {
                    const std::vector<uint16_t> mine(777, 0x7b53); // 60000
                    std::vector<uint16_t> out(mine.size());
                    run(how, context, 2 * mine.size(), [&](auto *params, auto **request) {
                        dtrain_op_params_t scaled = *params;
                        scaled.prescale = 0.5;
                        scaled.postscale = 2;
                        return dtrain_allreduce(comm, mine.data(), out.data(), mine.size(),
                                                DTRAIN_F16, DTRAIN_AVG, &scaled, request);
                    });
                    REQUIRE(out == mine);
                }
            });
}

// What ranks may not mix, although the sums of their calls would be alike.
void differing_calls_are_found(void **) {
    ranks::run(2, {{"transports", "tcp"}}, [](int rank, dtrain_comm_t *comm) {
        int32_t wide[4] = {};
        int8_t narrow[4] = {};
        dtrain_status_t s =
            rank == 0
                ? dtrain_allreduce(comm, narrow, narrow, 4, DTRAIN_I8, DTRAIN_AVG, nullptr, nullptr)
                : dtrain_allreduce(comm, wide, wide, 4, DTRAIN_I32, DTRAIN_SUM, nullptr, nullptr);
        REQUIRE(s == DTRAIN_ERR_MISMATCH);
        REQUIRE(ranks::last_error().find("i8") != std::string::npos);
    });
}

} // namespace

int main() {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed()));
    const CMUnitTest tests[] = {
        cmocka_unit_test(in_shared_memory),
        cmocka_unit_test(over_tcp),
        cmocka_unit_test(by_every_algorithm),
        cmocka_unit_test(over_several_hosts),
        cmocka_unit_test(with_factors),
        cmocka_unit_test(in_shared_buffers),
        cmocka_unit_test(differing_calls_are_found),
    };
    return cmocka_run_group_tests_name("averages", tests, nullptr, nullptr);
}
