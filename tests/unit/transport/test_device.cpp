// Opening a device: what a plugin says of it is checked before it is believed.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "transport/device.h"

#include "base/status.h"

#include <cstring>

using namespace dtrain;
using namespace dtrain::transport;

namespace {

struct Bench {
    Options options;
    Log log;
    int closed = 0;

    Bench() {
        assert_int_equal(options.set("plugin.path", PLUGIN_FOLDER "/loader"), DTRAIN_OK);
        log.set_sink([](void *arg, int32_t, const char *) { ++*static_cast<int *>(arg); }, &closed);
    }
};

void test_open(void **) {
    Bench b;
    Host host(b.options, b.log, monotonic_clock());
    std::vector<std::unique_ptr<Device>> devices;
    assert_int_equal(Device::open(host, "toy", b.options, devices), DTRAIN_OK);
    assert_int_equal(devices.size(), 2); // it lists two
    const Device *device = devices[0].get();
    assert_true(device->name() == "toy");
    assert_true(device->label() == "first");
    assert_int_equal(device->attr().max_iov, 4);
    assert_int_equal(device->attr().numa_node, -1); // what the plugin leaves out is "unknown"
    assert_true(device->address() == std::vector<uint8_t>(8, 0x5a));
    assert_true(device->has(0));
    assert_false(device->has(DTRAIN_TP_CAP_PUT));
    assert_null(device->ops().arm); // past the end of the plugin's table
    assert_int_equal(device->ops().progress(device->dev(), nullptr, 0), 0);
    assert_int_equal(b.closed, 0);
    devices.clear();
    assert_int_equal(b.closed, 2);
}

void refuse(const char *spoil, Status expected, const char *part, int closed) {
    Bench b;
    assert_int_equal(b.options.set("plugin.toy.spoil", spoil), DTRAIN_OK);
    Host host(b.options, b.log, monotonic_clock());
    std::vector<std::unique_ptr<Device>> devices;
    fail(DTRAIN_ERR_IO, "an older failure");
    assert_int_equal(Device::open(host, "toy", b.options, devices), expected);
    assert_true(devices.empty());
    if (std::strstr(error_text(), part) == nullptr)
        fail_msg("%s: \"%s\" does not tell \"%s\"", spoil, error_text(), part);
    assert_null(std::strstr(error_text(), "older"));
    assert_int_equal(b.closed, closed);
}

void test_refusals(void **) {
    refuse("list", DTRAIN_ERR_UNSUPPORTED, "no device", 0);
    refuse("open", DTRAIN_ERR_IO, "transport toy: open: system call failed", 0);
    refuse("open_text", DTRAIN_ERR_IO, "transport toy: open: the toy is broken", 0);
    refuse("query", DTRAIN_ERR_IO, "transport toy: query", 1);
    refuse("address", DTRAIN_ERR_IO, "transport toy: address", 1);
    for (const char *spoil : {"max_iov", "max_message", "no_address", "long_address", "rkey",
                              "handle", "put", "get", "window", "event_fd", "dmabuf"})
        refuse(spoil, DTRAIN_ERR_TRANSPORT, "transport toy is broken", 1);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
