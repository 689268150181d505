// Update rules of tables, and rounding at random. That all rules have the bits of processors is
// shown by tests/gpu/test_shards.cpp; here is what their interface says.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cases_work.h"
#include "dtrain.h"

#include <cmath>

namespace dtrain::test {

// Skips the case on devices that cannot prepare this. skip() runs no destructors, so before a Rig.
inline void need_prepared(uint32_t what) {
    const dtrain_status_t status = ops().prepare(Rig().dev, what);
    if (status == DTRAIN_OK) return;
    assert_int_equal(status, DTRAIN_ERR_UNSUPPORTED);
    print_message("this device cannot prepare %#x\n", what);
    skip();
}
constexpr uint32_t rules = uint32_t{DTRAIN_DV_RULES} | DTRAIN_F32;

inline void rounding_has_the_same_bits(void **) {
    for (const uint32_t dtype : {DTRAIN_F16, DTRAIN_BF16}) need_prepared(dtype);
    Rig rig;
    for (const uint32_t dtype : {DTRAIN_F16, DTRAIN_BF16}) {
        rig.ok(ops().prepare(rig.dev, dtype));
        for (const uint64_t count : {uint64_t{1}, uint64_t{1000}, uint64_t{70'001}}) {
            Sources source(rig, 1, count, DTRAIN_F32, 0);
            OnDevice rounded(rig, count * 2);
            dtrain_dv_work_t work = work_of(DTRAIN_DV_ROUND, DTRAIN_F32, count);
            work.op = dtype;
            work.seed = 12345;
            work.first = UINT32_MAX - 500; // it wraps
            void *dst = rounded.address;
            work.dsts = &dst;
            work.srcs = source.device.data();
            rig.ok(ops().run(rig.queue, &work));
            Bytes expected(count * 2);
            std::vector<float> aligned(count);
            memcpy(aligned.data(), source.host[0], count * sizeof(float));
            device::narrow_randomly(expected.data(), aligned.data(), count, dtype, work.seed,
                                    work.first);
            expect_bits(rounded.read(), expected, dtype, "rounding", 1, count, 0);
        }
    }
}

// A table of rows of 7 columns, of which 4 are updated.
struct Update {
    static constexpr uint64_t rows = 300, columns = 4, stride = 7, all = rows * stride;
    explicit Update(Rig &rig, uint32_t rule)
        : values(rig, all * 4), gradients(rig, all * 4), state(rig, rows * columns * 4),
          norms(rig, rows * (2 + 3) * 8), rig_(rig) {
        std::vector<float> ones(all, 1), twos(all, 2);
        values.write(ones.data());
        gradients.write(twos.data());
        state.write(std::vector<float>(rows * columns, 0).data());
        work = work_of(DTRAIN_DV_UPDATE, DTRAIN_F32, rows * columns);
        work.op = rule;
        dst = values.address;
        src = gradients.address;
        work.dsts = &dst;
        work.srcs = &src;
        work.update = &update;
        update.struct_size = sizeof update;
        update.columns = columns;
        update.stride = stride;
        update.slots[0] = state.address;
        update.norms = norms.address;
        update.rate = 0.5;
        update.momentum = 0.5;
    }
    void run(uint32_t pass = DTRAIN_DV_PASS_APPLY) {
        update.pass = pass;
        rig_.ok(ops().run(rig_.queue, &work));
    }
    void expect(float updated) {
        const Bytes bytes = values.read();
        for (uint64_t i = 0; i < all; i++) {
            float value = 0;
            memcpy(&value, &bytes[i * 4], 4);
            assert_true(value == (i % stride < columns ? updated : 1));
        }
    }
    OnDevice values, gradients, state, norms;
    dtrain_dv_work_t work;
    dtrain_dv_update_t update = {};
    void *dst;
    const void *src;

  private:
    Rig &rig_;
};

inline void rules_update_columns(void **) {
    need_prepared(rules);
    Rig rig;
    rig.ok(ops().prepare(rig.dev, rules));
    Update plain(rig, DTRAIN_RULE_SGD);
    plain.run();
    plain.expect(0);
    Update momentum(rig, DTRAIN_RULE_MOMENTUM);
    momentum.run(); // v = 2, w = 0
    momentum.run(); // v = 3, w = -1.5
    momentum.expect(-1.5f);
    Update clipped(rig, DTRAIN_RULE_SGD); // the norm of four times 2 is 4
    clipped.update.flags = DTRAIN_DV_ADJUSTS | DTRAIN_DV_CLIPPED | DTRAIN_DV_BY_ROW;
    clipped.update.clip_norm = 2;
    for (const uint32_t pass : {DTRAIN_DV_PASS_CLIP, DTRAIN_DV_PASS_SCALE, DTRAIN_DV_PASS_APPLY})
        clipped.run(pass);
    clipped.expect(0.5f);
    Update by_rows(rig, DTRAIN_RULE_ADAGRAD_ROWS); // the mean square is 4, and its root 2
    by_rows.update.flags = DTRAIN_DV_BY_ROW;
    for (const uint32_t pass :
         {DTRAIN_DV_PASS_DIRECTION, DTRAIN_DV_PASS_RATIO, DTRAIN_DV_PASS_APPLY})
        by_rows.run(pass);
    by_rows.expect(0.5f);
}

inline void rules_are_refused(void **) {
    need_prepared(rules);
    Rig rig;
    Update update(rig, DTRAIN_RULE_SGD);
    const auto refused = [&](dtrain_status_t status) {
        assert_int_equal(ops().run(rig.queue, &update.work), status);
    };
    refused(DTRAIN_ERR_STATE); // not prepared
    rig.ok(ops().prepare(rig.dev, rules));
    for (const uint32_t rule : {DTRAIN_RULE_DC_SGD, DTRAIN_RULE_FUNCTION}) {
        update.work.op = rule;
        refused(DTRAIN_ERR_UNSUPPORTED);
        update.work.count = 0;
        refused(DTRAIN_ERR_UNSUPPORTED);
        update.work.count = Update::rows * Update::columns;
    }
    update.work.op = DTRAIN_RULE_SGD;
    update.work.dtype = DTRAIN_I32;
    refused(DTRAIN_ERR_INVALID);
    update.work.dtype = DTRAIN_F32;
    for (const uint32_t pass : {uint32_t(DTRAIN_DV_PASS_RATIO), 9u}) { // it takes no norms
        update.update.pass = pass;
        refused(DTRAIN_ERR_INVALID);
    }
    update.update.pass = DTRAIN_DV_PASS_CLIP;
    update.update.norms = nullptr;
    refused(DTRAIN_ERR_INVALID);
    update.update.pass = DTRAIN_DV_PASS_APPLY;
    update.update.columns = 0;
    refused(DTRAIN_ERR_INVALID);
    update.update.columns = 7; // the elements are no whole rows
    refused(DTRAIN_ERR_INVALID);
    update.update.columns = 8; // wider than the table's
    refused(DTRAIN_ERR_INVALID);
    update.work.update = nullptr;
    refused(DTRAIN_ERR_INVALID);
}

inline constexpr CMUnitTest rule_cases[] = {cmocka_unit_test(rounding_has_the_same_bits),
                                            cmocka_unit_test(rules_update_columns),
                                            cmocka_unit_test(rules_are_refused)};

} // namespace dtrain::test
