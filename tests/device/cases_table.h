// The plugin's tables, and what it says of devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rig.h"

namespace dtrain::test {

inline void table_is_whole(void **) {
    const dtrain_dv_plugin_t &plugin = *subject.plugin;
    assert_int_equal(plugin.abi, DTRAIN_DV_ABI);
    assert_non_null(plugin.name);
    assert_non_null(plugin.version);
    const dtrain_dv_ops_t &o = ops();
#define MUST(member) assert_true(DTRAIN_DV_HAS(&o, member))
    MUST(list);
    MUST(query);
    MUST(open);
    MUST(close);
    MUST(prepare);
    MUST(classify);
    MUST(alloc);
    MUST(pin);
    MUST(address);
    MUST(release);
    MUST(queue_own);
    MUST(queue_adopt);
    MUST(queue_free);
    MUST(queue_done);
    MUST(copy);
    MUST(fill);
    MUST(run);
    MUST(signal);
#undef MUST
}

inline void attributes_fit_the_table(void **) {
    Rig rig;
    const dtrain_dv_attr_t &attr = rig.attr;
    assert_true(attr.ordinal >= 0);
    assert_true(attr.memory_bytes > 0 && attr.limit_bytes > 0);
    assert_true(attr.max_operands >= 2);
    assert_true(memchr(attr.name, 0, sizeof attr.name) != nullptr && attr.name[0] != 0);
    assert_true(memchr(attr.address, 0, sizeof attr.address) != nullptr);
    assert_true(memchr(attr.driver, 0, sizeof attr.driver) != nullptr);
    uint8_t set = 0;
    for (uint8_t byte : attr.uuid) set |= byte;
    assert_true(set != 0);
    if (rig.has(DTRAIN_DV_CAP_HOLD)) assert_non_null(ops().hold);
    if (rig.has(DTRAIN_DV_CAP_DMABUF)) assert_non_null(ops().dmabuf);
    if (rig.has(DTRAIN_DV_CAP_EXPORT)) {
        assert_true(ops().export_handle != nullptr && ops().import != nullptr);
        assert_true(attr.handle_len > 0 && attr.handle_len <= 96);
    }
}

// A struct of an older core is shorter: nothing is written behind it.
inline void answers_fit_their_size(void **) {
    Rig rig;
    dtrain_dv_attr_t attr;
    memset(&attr, 0x77, sizeof attr);
    attr.struct_size = offsetof(dtrain_dv_attr_t, uuid);
    rig.ok(ops().query(rig.host.table(), rig.name.c_str(), &attr));
    assert_int_equal(attr.ordinal, rig.attr.ordinal);
    for (uint8_t byte : attr.uuid) assert_int_equal(byte, 0x77);
    dtrain_dv_range_t range;
    memset(&range, 0x77, sizeof range);
    range.struct_size = offsetof(dtrain_dv_range_t, id);
    rig.ok(ops().classify(rig.host.table(), rig.words, 4, &range));
    assert_int_equal(range.kind, DTRAIN_DV_PINNED);
    assert_int_equal(range.ordinal, 0x77777777);
}

inline void unknown_names_are_refused(void **) {
    Rig rig;
    dtrain_dv_dev_t *dev = nullptr;
    dtrain_dv_attr_t attr{};
    attr.struct_size = sizeof attr;
    for (const std::string &name :
         {std::string(), std::string("pigeon"), rig.name + "9", rig.name + "x"}) {
        rig.refused(ops().open(rig.host.table(), name.c_str(), &dev), DTRAIN_ERR_NOT_FOUND, "");
        rig.refused(ops().query(rig.host.table(), name.c_str(), &attr), DTRAIN_ERR_NOT_FOUND, "");
    }
    assert_null(dev);
}

inline void device_opens_twice(void **) {
    Rig one, two;
    one.finish();
    two.finish();
}

inline constexpr CMUnitTest table_cases[] = {
    cmocka_unit_test(table_is_whole),         cmocka_unit_test(attributes_fit_the_table),
    cmocka_unit_test(answers_fit_their_size), cmocka_unit_test(unknown_names_are_refused),
    cmocka_unit_test(device_opens_twice),
};

} // namespace dtrain::test
