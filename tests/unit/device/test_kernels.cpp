// Every reduce and scale kernel of every instruction set this processor has, against reference.h.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "device/kernel_table.h"
#include "device/kernels.h"
#include "unit/device/reference.h"

namespace {

using namespace dtrain::device;

constexpr uint64_t seed = 20240611;
uint64_t random_state = seed;

uint64_t random_bits() { // xorshift64*
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1d;
}

// Values at the edges of each format: zeros, subnormals, the least normal, halfway cases, the
// greatest, infinities, quiet and signalling NaNs.
constexpr uint64_t f32_edges[] = {0,          0x80000000, 1,          0x80000001, 0x7fffff,
                                  0x800000,   0x3f800000, 0xbf800000, 0x3f808000, 0x3f818000,
                                  0x477ff000, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
                                  0xffc12345, 0x7f800001, 0xffbfffff};
constexpr uint64_t f64_edges[] = {0,
                                  1ull << 63,
                                  1,
                                  0x3ff0000000000000,
                                  0x7fefffffffffffff,
                                  0x7ff0000000000000,
                                  0xfff0000000000000,
                                  0x7ff8000000000000,
                                  0xfff8123456789abc,
                                  0x7ff0000000000001};

uint64_t random_element(uint32_t dtype) {
    const uint64_t bits = random_bits();
    const bool edge = bits >> 62 == 0;
    if (dtype == DTRAIN_F32 && edge) return f32_edges[bits % std::size(f32_edges)];
    if (dtype == DTRAIN_F64 && edge) return f64_edges[bits % std::size(f64_edges)];
    if (dtype == DTRAIN_BF16 && edge) return f32_edges[bits % std::size(f32_edges)] >> 16;
    // Numbers around 1, so that sums round instead of just keeping the greater operand.
    if (dtype == DTRAIN_F32 && bits >> 63) return 0x3f000000 | (bits & 0x80ffffff);
    if (dtype == DTRAIN_F64 && bits >> 63) return 0x3fe0000000000000 | (bits & 0x801fffffffffffff);
    if (dtype == DTRAIN_BF16 && bits >> 63) return 0x3f00 | (bits & 0x80ff);
    return bits;
}

// Exactly count elements at the given distance from an aligned address: no room to read beyond.
struct Buffer {
    Buffer(uint64_t count, uint32_t dtype, uint64_t offset)
        : memory(new unsigned char[offset + count * dtype_size(dtype)]), data(&memory[offset]) {
        const uint64_t size = dtype_size(dtype);
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t element = random_element(dtype);
            std::memcpy(data + i * size, &element, size);
        }
    }
    std::unique_ptr<unsigned char[]> memory;
    unsigned char *data;
};

// A destination between guard bytes.
struct Guarded {
    static constexpr uint64_t margin = 128;
    Guarded(uint64_t size, uint64_t offset)
        : bytes(size), memory(margin + offset + size + margin, 0xa5),
          data(memory.data() + margin + offset) {}
    void check() const {
        for (const unsigned char *p = memory.data(); p < data; p++) assert_int_equal(*p, 0xa5);
        for (const unsigned char *p = data + bytes; p < memory.data() + memory.size(); p++)
            assert_int_equal(*p, 0xa5);
    }
    uint64_t bytes;
    std::vector<unsigned char> memory;
    unsigned char *data;
};

struct Case {
    const Kernels *kernels;
    uint32_t dtype, op, n;
    uint64_t count, offset;
};

void expect(const Case &c, const unsigned char *result, const std::vector<uint64_t> &expected) {
    const uint64_t size = dtype_size(c.dtype);
    for (uint64_t i = 0; i < c.count; i++) {
        uint64_t got = 0;
        std::memcpy(&got, result + i * size, size);
        if (got != expected[i])
            fail_msg("%s %s %s of %u, count %lu, offset %lu, element %lu: got %lx, expected %lx",
                     c.kernels->target, dtype_name(c.dtype), op_name(c.op), c.n, c.count, c.offset,
                     i, got, expected[i]);
    }
}

// Out of place, and twice: onto each of the sources and elsewhere.
void check_reduce(const Case &c) {
    const uint64_t size = dtype_size(c.dtype);
    std::vector<Buffer> buffers;
    std::vector<const void *> srcs;
    for (uint32_t k = 0; k < c.n; k++) {
        buffers.emplace_back(c.count, c.dtype, k % 2 ? 0 : c.offset);
        srcs.push_back(buffers[k].data);
    }
    std::vector<uint64_t> expected(c.count);
    for (uint64_t i = 0; i < c.count; i++)
        expected[i] = reference::fold(srcs.data(), c.n, i, c.dtype, c.op);

    Guarded out(c.count * size, c.offset);
    const auto reduce_with = c.kernels->dtypes[c.dtype]->ops[c.op];
    void *const one = out.data;
    reduce_with(&one, 1, srcs.data(), c.n, c.count);
    out.check();
    expect(c, out.data, expected);
    for (uint32_t k = 0; k < c.n; k++) {
        Guarded in_place(c.count * size, c.offset), other(c.count * size, 1);
        if (c.count > 0) std::memcpy(in_place.data, srcs[k], c.count * size);
        std::vector<const void *> with_dst = srcs;
        with_dst[k] = in_place.data;
        void *const dsts[] = {other.data, in_place.data};
        reduce_with(dsts, 2, with_dst.data(), c.n, c.count);
        for (Guarded *dst : {&in_place, &other}) {
            dst->check();
            expect(c, dst->data, expected);
        }
    }
}

template <class Check> void for_each_kernel(Check check) {
    const Kernels *kernels;
    for (uint32_t rank = 0; (kernels = supported_kernels(rank)) != nullptr; rank++)
        for (uint32_t dtype = DTRAIN_F32; dtype <= DTRAIN_U64; dtype++)
            for (uint32_t op = DTRAIN_SUM; op <= DTRAIN_BXOR; op++)
                if (op_valid(op, dtype)) check(kernels, dtype, op);
}

void reduce_equals_reference(void **) {
    constexpr uint64_t counts[] = {0,  1,  2,  3,  7,   8,   15,  16,   17,  31,
                                   33, 63, 64, 65, 127, 128, 129, 1000, 4097};
    for_each_kernel([&](const Kernels *kernels, uint32_t dtype, uint32_t op) {
        for (uint64_t count : counts)
            for (uint64_t offset : {0, 1, 2, 28})
                check_reduce({kernels, dtype, op, 2, count, offset});
    });
}

void reduce_many_equals_reference(void **) {
    for_each_kernel([&](const Kernels *kernels, uint32_t dtype, uint32_t op) {
        for (uint32_t n : {1, 3, 4, 7})
            for (uint64_t count : {1, 17, 100, 2100})
                check_reduce({kernels, dtype, op, n, count, 3});
    });
}

void scale_equals_reference(void **) {
    for_each_kernel([&](const Kernels *kernels, uint32_t dtype, uint32_t op) {
        if (op != DTRAIN_AVG) return;
        const uint64_t size = dtype_size(dtype);
        for (uint32_t divisor : {1u, 2u, 3u, 7u, 300u, 0x80000000u, 0xffffffffu})
            for (uint64_t count : {0, 1, 5, 16, 33, 1000}) {
                Buffer source(count, dtype, 0);
                Guarded out(count * size, 1);
                std::vector<uint64_t> expected(count);
                for (uint64_t i = 0; i < count; i++) {
                    std::memcpy(&expected[i], source.data + i * size, size);
                    expected[i] = reference::divide(expected[i], dtype, divisor);
                }
                if (count > 0) std::memcpy(out.data, source.data, count * size);
                kernels->dtypes[dtype]->scale(out.data, count, divisor);
                out.check();
                expect({kernels, dtype, op, divisor, count, 1}, out.data, expected);
            }
    });
}

// Out of place, and onto each of the sources.
void check_weigh(const Case &c) {
    const uint64_t size = dtype_size(c.dtype);
    const double all[] = {1.0 / 3, 0.25, -0.7, 1e-3, 1, 0, 0x1p-30};
    std::vector<Buffer> buffers;
    std::vector<const void *> srcs;
    for (uint32_t k = 0; k < c.n; k++) {
        buffers.emplace_back(c.count, c.dtype, k % 2 ? 0 : c.offset);
        srcs.push_back(buffers[k].data);
    }
    std::vector<uint64_t> expected(c.count);
    for (uint64_t i = 0; i < c.count; i++)
        expected[i] = reference::weigh(srcs.data(), all, c.n, i, c.dtype);
    for (uint32_t k = 0; k <= c.n; k++) {
        Guarded out(c.count * size, c.offset);
        std::vector<const void *> with_dst = srcs;
        if (k < c.n) {
            if (c.count > 0) std::memcpy(out.data, srcs[k], c.count * size);
            with_dst[k] = out.data;
        }
        c.kernels->dtypes[c.dtype]->weigh(out.data, with_dst.data(), all, c.n, c.count);
        out.check();
        expect(c, out.data, expected);
    }
}

void weigh_equals_reference(void **) {
    for_each_kernel([&](const Kernels *kernels, uint32_t dtype, uint32_t op) {
        if (op != DTRAIN_SUM || !is_floating(dtype)) return;
        for (uint32_t n : {1, 2, 3, 7})
            for (uint64_t count : {0, 1, 5, 16, 33, 127, 1000, 2100})
                check_weigh({kernels, dtype, op, n, count, 1});
    });
    assert_false(is_floating(DTRAIN_I8));
    assert_false(is_floating(0));
}

// All 65536 values of both 16-bit formats: unchanged by * 1 (but for the NaNs), and rounded right
// when combined with values of other magnitudes.
void halves_exhaustively(void **) {
    constexpr uint64_t count = 65536;
    std::vector<uint16_t> all(count), other(count), out(count);
    for (uint64_t i = 0; i < count; i++) all[i] = static_cast<uint16_t>(i);
    const Kernels *kernels;
    for (uint32_t rank = 0; (kernels = supported_kernels(rank)) != nullptr; rank++)
        for (uint32_t dtype : {DTRAIN_F16, DTRAIN_BF16}) {
            const int mantissa = dtype == DTRAIN_F16 ? 10 : 7;
            for (double factor : {1.0, 0.5, 3.0, 0x1.4p-3, 1e-3, 700.0, -1.0}) {
                const uint16_t bits = reference::to_half(factor, mantissa);
                for (uint16_t &o : other) o = bits;
                for (uint32_t op : {DTRAIN_PROD, DTRAIN_SUM}) {
                    const void *srcs[] = {all.data(), other.data()};
                    void *const dst = out.data();
                    kernels->dtypes[dtype]->ops[op](&dst, 1, srcs, 2, count);
                    for (uint64_t i = 0; i < count; i++) {
                        assert_int_equal(out[i], reference::fold(srcs, 2, i, dtype, op));
                        if (factor != 1.0 || op != DTRAIN_PROD) continue;
                        if (!std::isnan(reference::from_half(all[i], mantissa)))
                            assert_int_equal(out[i], all[i]);
                    }
                }
            }
        }
}

// (1 + 2^100) - 2^100 is 0, but 1 + (2^100 - 2^100) is 1: the order shows.
void reduce_many_keeps_the_order(void **) {
    const float one = 1, big = 0x1p100f, minus_big = -0x1p100f;
    const void *left[] = {&one, &big, &minus_big, &one}, *right[] = {&big, &minus_big, &one, &one};
    float result;
    reduce_many(&result, left, 4, 1, DTRAIN_F32, DTRAIN_SUM);
    assert_true(result == 1.0f);
    reduce_many(&result, right, 4, 1, DTRAIN_F32, DTRAIN_SUM);
    assert_true(result == 2.0f);
}

// 256 + 1 + 1 in bf16: each 1 is lost when every addition rounds.
void reduce_many_rounds_once(void **) {
    const uint16_t big = 0x4380, one = 0x3f80;
    const void *srcs[] = {&big, &one, &one};
    uint16_t once;
    reduce_many(&once, srcs, 3, 1, DTRAIN_BF16, DTRAIN_SUM);
    assert_int_equal(once, 0x4381); // 258
    uint16_t twice = big;
    reduce(&twice, &one, 1, DTRAIN_BF16, DTRAIN_SUM);
    reduce(&twice, &one, 1, DTRAIN_BF16, DTRAIN_SUM);
    assert_int_equal(twice, 0x4380);
}

// Sums that travel: of any number of ranks, added up in any order, they give the mean.
void means_of_sums(void **) {
    constexpr uint64_t count = 301;
    for (uint32_t dtype : {DTRAIN_F16, DTRAIN_I8, DTRAIN_U8, DTRAIN_I16, DTRAIN_U16, DTRAIN_I32,
                           DTRAIN_U32, DTRAIN_I64, DTRAIN_U64})
        for (uint32_t n : {2u, 3u, 7u, 300u, 4096u}) {
            const SumFormat format = sum_format(dtype);
            const uint64_t parts = count * format.parts;
            assert_true(dtype_size(format.dtype) * format.parts > dtype_size(dtype));
            std::vector<Buffer> buffers;
            std::vector<const void *> srcs;
            std::vector<uint64_t> sums(2 * count), one(2 * count);
            for (uint32_t k = 0; k < n; k++) {
                buffers.emplace_back(count, dtype, 0);
                if (k % 3 == 0 && k > 0) // all alike: the sum is as large as it can be
                    std::memcpy(buffers[k].data, buffers[0].data, count * dtype_size(dtype));
                srcs.push_back(buffers[k].data);
                to_sums(k == 0 ? sums.data() : one.data(), srcs[k], count, dtype, n);
                if (k > 0) reduce(sums.data(), one.data(), parts, format.dtype, DTRAIN_SUM);
            }
            std::vector<uint64_t> expected(count);
            for (uint64_t i = 0; i < count; i++)
                expected[i] = reference::mean(srcs.data(), n, i, dtype);
            Guarded out(count * dtype_size(dtype), 2);
            from_sums(out.data, sums.data(), count, dtype, n);
            out.check();
            expect({supported_kernels(0), dtype, DTRAIN_AVG, n, count, 2}, out.data, expected);
        }
    for (uint32_t dtype : {DTRAIN_F32, DTRAIN_F64, DTRAIN_BF16}) {
        assert_int_equal(sum_format(dtype).dtype, dtype);
        assert_int_equal(sum_format(dtype).parts, 1);
    }
}

void public_functions(void **) {
    assert_string_equal(kernel_target(), supported_kernels(0)->target);
    int32_t a[] = {1, -7}, b[] = {10, 20}, c[2];
    reduce_pair(c, a, b, 2, DTRAIN_I32, DTRAIN_SUM);
    assert_int_equal(c[0], 11);
    reduce(a, b, 2, DTRAIN_I32, DTRAIN_MAX);
    assert_int_equal(a[1], 20);
    int32_t d[] = {-7, 7};
    scale(d, 2, DTRAIN_I32, 2);
    assert_int_equal(d[0], -3);
    assert_int_equal(d[1], 3);
}

void names_and_validity(void **) {
    assert_int_equal(dtype_size(DTRAIN_BF16), 2);
    assert_int_equal(dtype_size(DTRAIN_U64), 8);
    assert_int_equal(dtype_size(0), 0);
    assert_int_equal(dtype_size(UINT32_MAX), 0);
    assert_string_equal(dtype_name(DTRAIN_F32), "f32");
    assert_null(dtype_name(13));
    assert_string_equal(op_name(DTRAIN_BXOR), "bxor");
    assert_null(op_name(0));
    assert_string_equal(op_name(DTRAIN_ADASUM), "adasum");
    assert_null(op_name(10));
    assert_true(op_valid(DTRAIN_BAND, DTRAIN_I8));
    assert_false(op_valid(DTRAIN_BAND, DTRAIN_F16));
    assert_true(op_valid(DTRAIN_AVG, DTRAIN_F64));
    assert_false(op_valid(0, DTRAIN_F32));
    assert_false(op_valid(DTRAIN_SUM, 0));
}

} // namespace

int main() {
    std::printf("seed %lu, targets", seed);
    const Kernels *kernels;
    for (uint32_t rank = 0; (kernels = supported_kernels(rank)) != nullptr; rank++)
        std::printf(" %s", kernels->target);
    std::printf("\n");
    const CMUnitTest tests[] = {
        cmocka_unit_test(reduce_equals_reference), cmocka_unit_test(reduce_many_equals_reference),
        cmocka_unit_test(scale_equals_reference),  cmocka_unit_test(weigh_equals_reference),
        cmocka_unit_test(halves_exhaustively),     cmocka_unit_test(reduce_many_keeps_the_order),
        cmocka_unit_test(reduce_many_rounds_once), cmocka_unit_test(means_of_sums),
        cmocka_unit_test(public_functions),        cmocka_unit_test(names_and_validity),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
