// Kernels: every dtype and op, bit for bit as the library computes in host memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "device/kernels.h"
#include "rig.h"

#include <memory>

namespace dtrain::test {

// Values at the edges of f32: zeros, subnormals, the least normal, ties of f16 and bf16, the
// greatest, infinities, quiet and signaling NaNs. Shifted, they are edges of other formats.
inline constexpr uint32_t edges[] = {0,          0x80000000, 1,          0x7fffff,   0x800000,
                                     0x3f800000, 0x3f808000, 0x3f818000, 0x477ff000, 0x33000000,
                                     0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345,
                                     0x7f800001, 0x38800000, 0x387fe000};
inline uint64_t edge(uint64_t i, uint32_t dtype) {
    const uint32_t bits = edges[i % std::size(edges)];
    if (dtype == DTRAIN_F64) return uint64_t{bits} << 32;
    if (dtype == DTRAIN_F16) {
        uint16_t half = 0;
        float value = 0;
        memcpy(&value, &bits, sizeof value);
        device::narrow(&half, &value, 1, DTRAIN_F16);
        return half;
    }
    return dtype == DTRAIN_BF16 ? bits >> 16 : bits;
}

// Random bits, numbers around 1, whose sums round, and now and then an edge.
inline Bytes random_elements(uint64_t count, uint32_t dtype) {
    const uint64_t size = device::dtype_size(dtype);
    Bytes bytes(count * size);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t bits = random_bits();
        const uint64_t kind = bits >> 61;
        if (kind == 0) bits = edge(bits >> 8, dtype);
        if (dtype == DTRAIN_F32 && kind > 3) bits = 0x3f000000 | (bits & 0x80ffffff);
        if (dtype == DTRAIN_F64 && kind > 3)
            bits = 0x3fe0000000000000 | (bits & 0x801fffffffffffff);
        if (dtype == DTRAIN_BF16 && kind > 3) bits = 0x3f00 | (bits & 0x80ff);
        memcpy(bytes.data() + i * size, &bits, size);
    }
    return bytes;
}

inline dtrain_dv_work_t work_of(uint32_t kind, uint32_t dtype, uint64_t count) {
    dtrain_dv_work_t work{};
    work.struct_size = sizeof work;
    work.kind = kind;
    work.dtype = dtype;
    work.count = count;
    work.m = work.n = 1;
    return work;
}

// Calls f(dtype) for the dtypes that the device has kernels for; there must be one.
template <class F> void each_dtype(Rig &rig, F &&f) {
    int found = 0;
    for (uint32_t dtype = DTRAIN_F32; dtype <= DTRAIN_U64; dtype++) {
        const dtrain_status_t status = ops().prepare(rig.dev, dtype);
        if (status == DTRAIN_ERR_UNSUPPORTED) continue;
        rig.ok(status);
        found++;
        f(dtype);
    }
    assert_true(found > 0);
}

inline void expect_bits(const Bytes &got, const Bytes &expected, uint32_t dtype, const char *what,
                        uint32_t n, uint64_t count, uint64_t offset) {
    const uint64_t size = device::dtype_size(dtype);
    for (uint64_t i = 0; i < count; i++)
        if (memcmp(&got[i * size], &expected[i * size], size) != 0) {
            uint64_t a = 0, b = 0;
            memcpy(&a, &got[i * size], size);
            memcpy(&b, &expected[i * size], size);
            fail_msg("%s %s of %u, count %lu, offset %lu, element %lu: got %lx, expected %lx",
                     device::dtype_name(dtype), what, n, count, offset, i, a, b);
        }
}

// Sources on the device, their contents here.
struct Sources {
    Sources(Rig &rig, uint32_t n, uint64_t count, uint32_t dtype, uint64_t offset) {
        for (uint32_t k = 0; k < n; k++) {
            contents.push_back(random_elements(count, dtype));
            memory.push_back(std::make_unique<OnDevice>(rig, contents.back().size(), offset));
            memory.back()->write(contents.back().data());
            device.push_back(memory.back()->address);
        }
        for (const Bytes &bytes : contents) host.push_back(bytes.data());
    }
    std::vector<Bytes> contents;
    std::vector<std::unique_ptr<OnDevice>> memory;
    std::vector<const void *> device, host;
};

inline void reductions_have_the_same_bits(void **) {
    Rig rig;
    struct Shape {
        uint32_t m, n;
        uint64_t count;
        bool odd; // one destination is misaligned
    };
    constexpr Shape shapes[] = {{1, 2, 1003, false},
                                {3, 5, 500, false},
                                {1, 3, 77, true},
                                {1, 1, 200, false},
                                {2, 2, 1, false}};
    each_dtype(rig, [&](uint32_t dtype) {
        const uint64_t size = device::dtype_size(dtype);
        for (uint32_t op = DTRAIN_SUM; op <= DTRAIN_BXOR; op++) {
            if (!device::op_valid(op, dtype)) continue;
            for (const Shape &shape : shapes) {
                const uint64_t offset = shape.odd ? size : 0;
                Sources sources(rig, shape.n, shape.count, dtype, 0);
                std::vector<std::unique_ptr<OnDevice>> results;
                std::vector<void *> dsts;
                for (uint32_t k = 0; k < shape.m; k++) {
                    results.push_back(std::make_unique<OnDevice>(rig, shape.count * size, offset));
                    dsts.push_back(results.back()->address);
                }
                Bytes expected(shape.count * size);
                device::reduce_many(expected.data(), sources.host.data(), shape.n, shape.count,
                                    dtype, op);
                dtrain_dv_work_t work = work_of(DTRAIN_DV_REDUCE, dtype, shape.count);
                work.op = op;
                work.m = shape.m;
                work.n = shape.n;
                work.dsts = dsts.data();
                work.srcs = sources.device.data();
                rig.ok(ops().run(rig.queue, &work));
                for (const auto &result : results)
                    expect_bits(result->read(), expected, dtype, device::op_name(op), shape.n,
                                shape.count, offset);
            }
        }
    });
}

// Bytes of any number and alignment, to several memories, whatever they stand for.
inline void bytes_are_moved(void **) {
    Rig rig;
    rig.ok(ops().prepare(rig.dev, 0));
    for (const uint64_t offset : {0, 4, 1})
        for (const uint64_t count : {1, 15, 64, 4099, 1'000'003}) {
            Bytes bytes(count);
            for (uint64_t i = 0; i < count; i++) bytes[i] = uint8_t(i * 251 + i / 256);
            OnDevice from(rig, count, offset), one(rig, count, offset), two(rig, count, offset);
            from.write(bytes.data());
            void *dsts[] = {one.address, two.address};
            const void *src = from.address;
            dtrain_dv_work_t work = work_of(DTRAIN_DV_REDUCE, 0, count);
            work.m = 2;
            work.n = 1;
            work.dsts = dsts;
            work.srcs = &src;
            rig.ok(ops().run(rig.queue, &work));
            assert_true(one.read() == bytes && two.read() == bytes);
        }
}

// Each pair of edges: NaNs on either side, zeros of both signs.
inline void edges_have_the_same_bits(void **) {
    Rig rig;
    constexpr uint64_t n = std::size(edges), count = n * n;
    each_dtype(rig, [&](uint32_t dtype) {
        const uint64_t size = device::dtype_size(dtype);
        Bytes first(count * size), second(count * size), expected(count * size);
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t a = edge(i / n, dtype), b = edge(i % n, dtype);
            memcpy(&first[i * size], &a, size);
            memcpy(&second[i * size], &b, size);
        }
        OnDevice one(rig, first.size()), two(rig, first.size()), result(rig, first.size());
        one.write(first.data());
        two.write(second.data());
        void *dst = result.address;
        const void *srcs[] = {one.address, two.address}, *host[] = {first.data(), second.data()};
        for (uint32_t op = DTRAIN_SUM; op <= DTRAIN_BXOR; op++) {
            if (!device::op_valid(op, dtype)) continue;
            dtrain_dv_work_t work = work_of(DTRAIN_DV_REDUCE, dtype, count);
            work.op = op;
            work.n = 2;
            work.dsts = &dst;
            work.srcs = srcs;
            rig.ok(ops().run(rig.queue, &work));
            device::reduce_many(expected.data(), host, 2, count, dtype, op);
            expect_bits(result.read(), expected, dtype, device::op_name(op), 2, count, 0);
        }
    });
}

// A destination that is a source, and pinned memory among them.
inline void reductions_run_in_place(void **) {
    Rig rig;
    constexpr uint64_t count = 2001;
    Sources sources(rig, 3, count, DTRAIN_F32, 0);
    rig.ok(ops().prepare(rig.dev, DTRAIN_F32));
    Pinned pinned(rig, count * 4);
    memcpy(pinned.memory, sources.host[2], count * 4);
    sources.device[2] = pinned.device;
    void *dsts[] = {sources.memory[1]->address, pinned.device};
    Bytes expected(count * 4);
    device::reduce_many(expected.data(), sources.host.data(), 3, count, DTRAIN_F32, DTRAIN_SUM);
    dtrain_dv_work_t work = work_of(DTRAIN_DV_REDUCE, DTRAIN_F32, count);
    work.op = DTRAIN_SUM;
    work.m = 2;
    work.n = 3;
    work.dsts = dsts;
    work.srcs = sources.device.data();
    rig.ok(ops().run(rig.queue, &work));
    rig.finish();
    assert_true(sources.memory[1]->read() == expected);
    assert_memory_equal(pinned.memory, expected.data(), expected.size());
}

inline void most_operands_work(void **) {
    Rig rig;
    const uint32_t n = rig.attr.max_operands;
    rig.ok(ops().prepare(rig.dev, DTRAIN_F32));
    constexpr uint64_t count = 33;
    Sources sources(rig, n, count, DTRAIN_F32, 0);
    std::vector<void *> dsts;
    for (const auto &memory : sources.memory) dsts.push_back(memory->address);
    Bytes expected(count * 4);
    device::reduce_many(expected.data(), sources.host.data(), n, count, DTRAIN_F32, DTRAIN_AVG);
    dtrain_dv_work_t work = work_of(DTRAIN_DV_REDUCE, DTRAIN_F32, count);
    work.op = DTRAIN_AVG;
    work.m = work.n = n;
    work.dsts = dsts.data();
    work.srcs = sources.device.data();
    rig.ok(ops().run(rig.queue, &work));
    for (const auto &memory : sources.memory) assert_true(memory->read() == expected);
    work.n = n + 1;
    rig.refused(ops().run(rig.queue, &work), DTRAIN_ERR_INVALID, "");
}

inline void scaling_has_the_same_bits(void **) {
    Rig rig;
    each_dtype(rig, [&](uint32_t dtype) {
        const uint64_t size = device::dtype_size(dtype), count = 1005;
        for (const uint32_t divisor : {1u, 3u, 1000u, 4000000000u})
            for (const uint64_t offset : {uint64_t{0}, size}) {
                Sources sources(rig, 1, count, dtype, offset);
                Bytes expected = sources.contents[0];
                device::scale(expected.data(), count, dtype, divisor);
                void *dst = sources.memory[0]->address;
                dtrain_dv_work_t work = work_of(DTRAIN_DV_SCALE, dtype, count);
                work.divisor = divisor;
                work.dsts = &dst;
                work.srcs = sources.device.data();
                rig.ok(ops().run(rig.queue, &work));
                expect_bits(sources.memory[0]->read(), expected, dtype, "scale", divisor, count,
                            offset);
            }
    });
}

inline void weights_have_the_same_bits(void **) {
    Rig rig;
    each_dtype(rig, [&](uint32_t dtype) {
        if (!device::is_floating(dtype)) return;
        const uint64_t size = device::dtype_size(dtype), count = 1001;
        const double weights[] = {0.1, -3.7e5, 1e-3, 0.3333333333333333};
        for (const uint32_t n : {1u, 2u, 4u})
            for (const uint64_t offset : {uint64_t{0}, size}) {
                Sources sources(rig, n, count, dtype, 0);
                OnDevice result(rig, count * size, offset);
                void *dst = result.address;
                dtrain_dv_work_t work = work_of(DTRAIN_DV_WEIGH, dtype, count);
                work.n = n;
                work.weights = weights;
                work.dsts = &dst;
                work.srcs = sources.device.data();
                rig.ok(ops().run(rig.queue, &work));
                Bytes expected(count * size);
                device::weigh(expected.data(), sources.host.data(), weights, n, count, dtype);
                expect_bits(result.read(), expected, dtype, "weigh", n, count, offset);
                work.kind = DTRAIN_DV_MULTIPLY;
                work.n = 1;
                rig.ok(ops().run(rig.queue, &work));
                device::multiply(expected.data(), sources.host[0], count, dtype, weights[0]);
                expect_bits(result.read(), expected, dtype, "multiply", 1, count, offset);
            }
    });
}

inline void conversions_have_the_same_bits(void **) {
    Rig rig;
    for (const uint32_t half : {uint32_t(DTRAIN_F16), uint32_t(DTRAIN_BF16)}) {
        if (ops().prepare(rig.dev, half) == DTRAIN_ERR_UNSUPPORTED) continue;
        constexpr uint64_t all = 65536; // every value of 16 bits
        Bytes halves(all * 2), wide(all * 4), back(all * 2);
        for (uint32_t i = 0; i < all; i++) memcpy(&halves[2 * i], &i, 2);
        device::widen(reinterpret_cast<float *>(wide.data()), halves.data(), all, half);
        OnDevice from(rig, halves.size()), to(rig, wide.size());
        from.write(halves.data());
        dtrain_dv_work_t work = work_of(DTRAIN_DV_CONVERT, half, all);
        work.op = DTRAIN_F32;
        void *dst = to.address;
        const void *src = from.address;
        work.dsts = &dst;
        work.srcs = &src;
        rig.ok(ops().run(rig.queue, &work));
        expect_bits(to.read(), wide, DTRAIN_F32, "widen", 1, all, 0);

        wide = random_elements(all, DTRAIN_F32);
        for (uint32_t i = 0; i < all / 4; i++) { // around the numbers of 16 bits
            const uint32_t bits = (i << 18 | uint32_t(random_bits())) ^ (i % 3 == 0 ? 0x1fff : 0);
            memcpy(&wide[8 * i], &bits, 4);
        }
        to.write(wide.data());
        device::narrow(back.data(), reinterpret_cast<const float *>(wide.data()), all, half);
        work.dtype = DTRAIN_F32;
        work.op = half;
        dst = from.address;
        src = to.address;
        rig.ok(ops().run(rig.queue, &work));
        expect_bits(from.read(), back, half, "narrow", 1, all, 0);
    }
}

inline void wrong_work_is_refused(void **) {
    Rig rig;
    rig.ok(ops().prepare(rig.dev, DTRAIN_F32));
    assert_true(ops().prepare(rig.dev, 99) == DTRAIN_ERR_UNSUPPORTED);
    OnDevice memory(rig, 64);
    const Bytes before = memory.read();
    void *dst = memory.address;
    const void *src = memory.address;
    dtrain_dv_work_t good = work_of(DTRAIN_DV_REDUCE, DTRAIN_F32, 16);
    good.op = DTRAIN_SUM;
    good.dsts = &dst;
    good.srcs = &src;
    const auto refuse = [&](auto &&change, dtrain_status_t status) {
        dtrain_dv_work_t bad = good;
        change(bad);
        rig.refused(ops().run(rig.queue, &bad), status, "");
    };
    refuse([](auto &w) { w.kind = 0; }, DTRAIN_ERR_UNSUPPORTED);
    refuse([](auto &w) { w.kind = 1000; }, DTRAIN_ERR_UNSUPPORTED);
    refuse([](auto &w) { w.m = 0; }, DTRAIN_ERR_INVALID);
    refuse([](auto &w) { w.n = 0; }, DTRAIN_ERR_INVALID);
    refuse([](auto &w) { w.n = UINT32_MAX; }, DTRAIN_ERR_INVALID);
    refuse([](auto &w) { w.op = DTRAIN_BAND; }, DTRAIN_ERR_INVALID); // of floats
    refuse([](auto &w) { w.op = 77; }, DTRAIN_ERR_INVALID);
    refuse([](auto &w) { w.kind = DTRAIN_DV_SCALE, w.divisor = 0; }, DTRAIN_ERR_INVALID);
    dtrain_dv_work_t nothing = good;
    nothing.count = 0;
    rig.ok(ops().run(rig.queue, &nothing));
    assert_true(memory.read() == before);
}

inline constexpr CMUnitTest work_cases[] = {
    cmocka_unit_test(reductions_have_the_same_bits),
    cmocka_unit_test(reductions_run_in_place),
    cmocka_unit_test(most_operands_work),
    cmocka_unit_test(scaling_has_the_same_bits),
    cmocka_unit_test(weights_have_the_same_bits),
    cmocka_unit_test(conversions_have_the_same_bits),
    cmocka_unit_test(wrong_work_is_refused),
    cmocka_unit_test(bytes_are_moved),
    cmocka_unit_test(edges_have_the_same_bits),
};

} // namespace dtrain::test
