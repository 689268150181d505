// The services that plugins get.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "transport/host.h"

#include "base/status.h"

#include <algorithm>
#include <cstring>
#include <string>

using namespace dtrain;
using namespace dtrain::transport;

namespace {

struct FixedClock : Clock {
    int64_t now = 0;
    int64_t now_ns() override { return now; }
};

struct Bench {
    Options options;
    Log log;
    FixedClock clock;
};

void test_table(void **) {
    Bench b;
    Host host(b.options, b.log, b.clock);
    const dtrain_tp_host_t *t = host.table();
    assert_int_equal(t->struct_size, sizeof *t);
    assert_int_equal(t->abi, DTRAIN_TP_ABI);
    b.clock.now = 1234567;
    assert_int_equal(t->now_ns(t->self), 1234567);
    assert_int_equal(t->fail(t->self, DTRAIN_ERR_PEER, "100%s gone"), DTRAIN_ERR_PEER);
    assert_string_equal(error_text(), "100%s gone");
    const dtrain_tp_plugin_t *plugin = nullptr;
    assert_int_equal(t->plugin(t->self, "tcp", &plugin), DTRAIN_OK);
    assert_string_equal(plugin->name, "tcp");
    assert_int_equal(t->plugin(t->self, "nothing", &plugin), DTRAIN_ERR_NOT_FOUND);
}

void test_option(void **) {
    Bench b;
    assert_int_equal(b.options.set("secret", "hush"), DTRAIN_OK);
    assert_int_equal(b.options.set("tcp.interface", "lo"), DTRAIN_OK);
    assert_int_equal(b.options.set("plugin.toy.speed", "12"), DTRAIN_OK);
    Host host(b.options, b.log, b.clock);
    const dtrain_tp_host_t *t = host.table();
    char value[8] = "before";
    assert_int_equal(t->option(t->self, "secret", value, sizeof value), DTRAIN_ERR_NOT_FOUND);
    assert_string_equal(value, "before");
    assert_null(std::strstr(error_text(), "hush"));
    assert_int_equal(t->option(t->self, "tcp.interface", value, sizeof value), DTRAIN_OK);
    assert_string_equal(value, "lo");
    assert_int_equal(t->option(t->self, "plugin.toy.speed", value, 3), DTRAIN_OK);
    assert_string_equal(value, "12");
    assert_int_equal(t->option(t->self, "plugin.toy.speed", value, 2), DTRAIN_ERR_TRUNCATED);
    assert_int_equal(t->option(t->self, "plugin.toy.speed", value, 0), DTRAIN_ERR_TRUNCATED);
    assert_int_equal(t->option(t->self, "plugin.toy.x", value, 8), DTRAIN_ERR_NOT_FOUND);
}

// RFC 4231, cases 2 (short key), 3 (20 bytes) and 6 (a key longer than a block).
void test_sign(void **) {
    struct Case {
        std::vector<uint8_t> key;
        std::string data;
        const char *mac;
    };
    const Case cases[] = {
        {{'J', 'e', 'f', 'e'},
         "what do ya want for nothing?",
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {std::vector<uint8_t>(20, 0xaa), std::string(50, char(0xdd)),
         "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {std::vector<uint8_t>(131, 0xaa), "Test Using Larger Than Block-Size Key - Hash Key First",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
    };
    Bench b;
    for (const Case &c : cases) {
        Host host(b.options, b.log, b.clock,
                  std::string_view(reinterpret_cast<const char *>(c.key.data()), c.key.size()));
        const dtrain_tp_host_t *t = host.table();
        uint8_t mac[32];
        assert_int_equal(t->sign(t->self, c.data.data(), c.data.size(), mac), DTRAIN_OK);
        char text[65];
        for (int i = 0; i < 32; i++) std::snprintf(text + 2 * i, 3, "%02x", mac[i]);
        assert_string_equal(text, c.mac);
    }
}

void test_sign_without_secret(void **) {
    Bench b;
    Host host(b.options, b.log, b.clock);
    uint8_t mac[32];
    assert_int_equal(host.table()->sign(host.table()->self, "x", 1, mac), DTRAIN_ERR_UNSUPPORTED);
}

void test_random(void **) {
    Bench b;
    Host host(b.options, b.log, b.clock);
    // Longer than what the kernel gives without a chance of interruption (256 bytes).
    std::vector<uint8_t> first(100000), second(first.size());
    host.table()->random(host.table()->self, first.data(), first.size());
    host.table()->random(host.table()->self, second.data(), second.size());
    assert_memory_not_equal(first.data(), second.data(), first.size());
    auto zeros = std::count(first.end() - 64, first.end(), 0);
    assert_true(zeros < 16); // 64 bytes of chance hold 16 zeros once in 10^24 runs
}

void test_log(void **) {
    Bench b;
    std::string lines;
    b.log.set_sink(
        [](void *arg, int32_t level, const char *line) {
            *static_cast<std::string *>(arg) += std::to_string(level) + line + ";";
        },
        &lines);
    b.log.set_level(DTRAIN_LOG_INFO);
    Host host(b.options, b.log, b.clock);
    const dtrain_tp_host_t *t = host.table();
    t->log(t->self, DTRAIN_LOG_INFO, "a %d");
    t->log(t->self, DTRAIN_LOG_DEBUG, "b");
    t->log(t->self, -5, "c"); // a plugin's number is not believed
    t->log(t->self, 99, "d");
    assert_string_equal(lines.c_str(), "3a %d;1c;");
}

void test_copy(void **) {
    Bench b;
    char to[4] = "...";
    Host plain(b.options, b.log, b.clock);
    assert_int_equal(plain.table()->copy(plain.table()->self, to, "abc", 4), DTRAIN_OK);
    assert_string_equal(to, "abc");
    Host device(b.options, b.log, b.clock, {}, protection::Level::none,
                [](void *, const void *, size_t) -> Status { return DTRAIN_ERR_DEVICE; });
    assert_int_equal(device.table()->copy(device.table()->self, to, "xyz", 4), DTRAIN_ERR_DEVICE);
    assert_string_equal(to, "abc");
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_table), cmocka_unit_test(test_option),
        cmocka_unit_test(test_sign),  cmocka_unit_test(test_sign_without_secret),
        cmocka_unit_test(test_log),   cmocka_unit_test(test_random),
        cmocka_unit_test(test_copy),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
