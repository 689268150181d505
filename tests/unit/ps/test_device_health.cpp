// What of an accelerator's failures makes the values of a table lost, and who hears of it.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/device_health.h"

#include "check.h"

#include <memory>
#include <string>

using namespace dtrain;
using ps::DeviceHealth;
using ps::Reason;

namespace {

struct Lines {
    Log log;
    std::string all;
    int count = 0;
    Lines() {
        log.set_sink(
            [](void *arg, int32_t, const char *line) {
                auto *self = static_cast<Lines *>(arg);
                self->all += line;
                self->count++;
            },
            this);
    }
};

accel::OwnQueue::Posted later() {
    return {.batch = 1, .later = std::make_shared<accel::OwnQueue::Posted::Later>()};
}
void submit(const accel::OwnQueue::Posted &posted, Status status, const char *text) {
    posted.later->status = status;
    posted.later->text = text;
    posted.later->submitted = true;
}

void test_outcomes(void **) {
    Lines lines;
    DeviceHealth health("t", "plain0");
    health.set_log(&lines.log);
    assert_int_equal(health.outcome(DTRAIN_OK), Reason::none);
    assert_string_equal(health.broken().c_str(), "");
    assert_int_equal(health.outcome(fail(DTRAIN_ERR_DEVICE, "the first")), Reason::device);
    // Also of work that went well itself: a save may have failed before it.
    assert_int_equal(health.outcome(DTRAIN_OK), Reason::device);
    assert_int_equal(health.outcome(fail(DTRAIN_ERR_DEVICE, "the second")), Reason::device);
    assert_string_equal(health.broken().c_str(), "the first");
    assert_int_equal(lines.count, 1);
    assert_string_equal(lines.all.c_str(), "table \"t\": its values here are lost: the first");
    health.renew();
    assert_int_equal(health.outcome(DTRAIN_OK), Reason::none);
}

// Of work that another thread submits the outcome is known later, and in order.
void test_later(void **) {
    Lines lines;
    DeviceHealth health("t", "plain0");
    health.set_log(&lines.log);
    const auto one = later(), two = later(), three = later();
    for (const auto &posted : {one, two, three, accel::OwnQueue::Posted{}}) health.watch(posted);
    submit(two, DTRAIN_ERR_DEVICE, "it fails");
    assert_int_equal(health.outcome(DTRAIN_OK), Reason::none);
    submit(one, DTRAIN_OK, "");
    assert_int_equal(health.outcome(DTRAIN_OK), Reason::device);
    assert_string_equal(health.broken().c_str(), "accelerator plain0: table: it fails");
    health.renew(); // what was submitted before does not matter any more
    submit(three, DTRAIN_ERR_DEVICE, "it fails, too");
    assert_int_equal(health.outcome(DTRAIN_OK), Reason::none);
    assert_int_equal(lines.count, 1);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_outcomes),
        cmocka_unit_test(test_later),
    };
    return cmocka_run_group_tests_name("device health", tests, nullptr, nullptr);
}
