// Loading plugins of accelerators, and finding out whose memory an address is.
// SPDX-License-Identifier: Apache-2.0
#include "rig.h"

#include <sys/mman.h>

using namespace dtrain;
using namespace dtrain::accel;
using dtrain::test::assert_text;
using dtrain::test::Memory;
using dtrain::test::Rig;

namespace {

void refuse(const char *name, Status expected, const char *why) {
    Rig rig(name, PLUGIN_FOLDER "/loader");
    assert_int_equal(rig.open(), expected);
    assert_text("option accelerators");
    assert_text(why);
    assert_false(rig.domains.any());
}

void test_unfit_plugins(void **) {
    refuse("other_number", DTRAIN_ERR_VERSION, "has device ABI 99, this library serves 1");
    refuse("stranger", DTRAIN_ERR_CONFIG, "its name is \"somebody\"");
    refuse("lacking", DTRAIN_ERR_CONFIG, "query(), which every device needs");
    refuse("lackin", DTRAIN_ERR_NOT_FOUND, "no device \"lackin\"; the nearest name is \"lacking\"");
    refuse("Plain", DTRAIN_ERR_INVALID, "is not a device's name");
}

void test_none(void **) {
    Rig rig("none");
    assert_int_equal(rig.open(), DTRAIN_OK);
    rig.domains.look();
    assert_false(rig.domains.any());
    assert_int_equal(rig.domains.require("plain"), DTRAIN_ERR_UNSUPPORTED);
    assert_text("the option accelerators is \"none\"");
}

void test_required(void **) {
    Rig rig("auto");
    assert_int_equal(rig.open(), DTRAIN_OK);
    assert_false(rig.domains.any());
    assert_int_equal(rig.domains.require("nothing"), DTRAIN_ERR_NOT_FOUND);
    assert_false(rig.domains.any());
    assert_int_equal(rig.domains.require("plain"), DTRAIN_OK);
    assert_int_equal(rig.domains.require("plain"), DTRAIN_OK);
    assert_true(rig.domains.any());
    bool found = false, refused = false;
    for (const PluginReport &plugin : rig.domains.report()) {
        if (plugin.name == "plain") found = plugin.why.empty() && plugin.devices.size() == 1;
        if (plugin.name == "nothing") refused = !plugin.why.empty();
    }
    assert_true(found && refused);
}

void test_addresses(void **) {
    Rig rig;
    assert_int_equal(rig.open(), DTRAIN_OK);
    Memory memory(rig, 1000);
    Where where;
    assert_int_equal(rig.domains.find(memory.address() + 10, 990, where), DTRAIN_OK);
    assert_non_null(where.domain);
    assert_ptr_equal(where.address, memory.address() + 10);
    assert_string_equal(where.domain->name().c_str(), "plain0");
    Where again;
    assert_int_equal(rig.domains.find(memory.address(), 1, again), DTRAIN_OK);
    assert_ptr_equal(again.domain, where.domain);
    assert_int_equal(rig.domains.find(memory.address() + 10, 991, where), DTRAIN_ERR_INVALID);
    assert_text("ends outside");
    int local = 0;
    for (const void *host :
         {static_cast<const void *>(&local), static_cast<const void *>(nullptr)}) {
        assert_int_equal(rig.domains.find(host, sizeof local, where), DTRAIN_OK);
        assert_null(where.domain);
    }
    assert_int_equal(rig.domains.find(memory.address() + 5000, 0, where), DTRAIN_OK);
}

void test_memory_that_is_nobodys(void **) {
    Rig rig;
    assert_int_equal(rig.open(), DTRAIN_OK);
    void *page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    Where where;
    assert_int_equal(rig.domains.find(page, 10, where), DTRAIN_ERR_INVALID);
    assert_text("neither of this process nor of an accelerator");
    munmap(page, 4096);
    assert_int_equal(rig.domains.find(page, 10, where), DTRAIN_ERR_INVALID);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_unfit_plugins),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_required),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_memory_that_is_nobodys),
    };
    return cmocka_run_group_tests_name("domains", tests, nullptr, nullptr);
}
