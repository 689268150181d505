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

// Registered memory is found without the plugin, as long as something uses it it stays.
void test_registered(void **) {
    Rig rig;
    assert_int_equal(rig.open(), DTRAIN_OK);
    Memory memory(rig, 1000);
    Where where;
    assert_int_equal(rig.domains.find(memory.address(), 1000, where), DTRAIN_OK);
    assert_null(where.memory.get());
    uint8_t *const part = memory.address() + 100;
    assert_int_equal(rig.domains.find(part, 800, where), DTRAIN_OK);
    assert_int_equal(where.allocation_bytes, 1000);
    std::shared_ptr<DeviceMemory> made = DeviceMemory::adopt(where, part, 800);
    assert_int_equal(made->share(1000), DTRAIN_ERR_UNSUPPORTED);
    assert_text("plain0: its memory cannot be passed to other processes");
    assert_null(made->shared());
    const DeviceMemory &known = *made;
    assert_int_equal(rig.domains.known().add(std::move(made)), DTRAIN_OK);
    const std::pair<int, int> parts[] = {{100, 800}, {100, 1}, {899, 1}, {500, 0}};
    for (auto [offset, bytes] : parts) {
        Where again;
        const bool found =
            rig.domains.known().find(memory.address() + offset, uint64_t(bytes), again);
        assert_true(found);
        assert_ptr_equal(again.address, memory.address() + offset);
        assert_ptr_equal(again.memory.get(), &known);
        assert_int_equal(rig.domains.known().remove(known), DTRAIN_ERR_BUSY);
    }
    const std::pair<int, int> others[] = {{99, 1}, {99, 900}, {100, 801}, {900, 1}};
    for (auto [offset, bytes] : others) {
        Where again;
        assert_false(rig.domains.known().find(memory.address() + offset, uint64_t(bytes), again));
    }
    assert_int_equal(rig.domains.known().remove(known), DTRAIN_OK);
    Where again;
    assert_false(rig.domains.known().find(memory.address() + 100, 1, again));
}

void test_devices_by_number(void **) {
    Rig rig("auto");
    assert_int_equal(rig.open(), DTRAIN_OK);
    Domain *domain = nullptr;
    assert_int_equal(rig.domains.find_device("plain", 0, domain), DTRAIN_OK);
    assert_string_equal(domain->name().c_str(), "plain0");
    assert_int_equal(rig.domains.find_device("plain", 1, domain), DTRAIN_ERR_INVALID);
    assert_text("there is no device 1; this process can use plain0");
    std::shared_ptr<DeviceMemory> made;
    assert_int_equal(rig.domains.find_device("plain", 0, domain), DTRAIN_OK);
    assert_int_equal(DeviceMemory::allocate(*domain, 100, false, made), DTRAIN_OK);
    std::memset(const_cast<uint8_t *>(made->begin()), 1, 100);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_unfit_plugins),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_required),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_memory_that_is_nobodys),
        cmocka_unit_test(test_registered),
        cmocka_unit_test(test_devices_by_number),
    };
    return cmocka_run_group_tests_name("domains", tests, nullptr, nullptr);
}
