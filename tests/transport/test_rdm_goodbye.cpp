// The end of a device (transports/rdm) over a wire that may crash on what arrives while it closes.
// SPDX-License-Identifier: Apache-2.0
#include "looped_device.h"

namespace dtrain::test {
namespace {

constexpr uint32_t closing_rounds = 100; // looks for who has gone already, before the goodbye

// How many packets are on their way when the wire closes.
uint32_t close_after(uint32_t late, bool closes_quietly) {
    uint32_t unheard = UINT32_MAX;
    {
        Looped looped;
        looped.receive();
        looped.send();
        for (int i = 0; i < 20; i++) looped.progress();
        assert_int_equal(looped.status(receive_cookie), DTRAIN_OK);
        looped.wire->unheard = &unheard;
        looped.wire->attributes().closes_quietly = closes_quietly;
        looped.wire->late = late;
    }
    return unheard;
}

void a_device_waits_for_the_answer_to_its_goodbye(void **) {
    assert_int_equal(close_after(closing_rounds + 50, true), 1); // the wire does not mind
    assert_int_equal(close_after(closing_rounds + 50, false), 0);
}

void it_does_not_wait_for_ever(void **) {
    const int64_t start = now_ns();
    assert_int_equal(close_after(UINT32_MAX, false), 1);
    assert_true(now_ns() - start < 5'000'000'000);
}

} // namespace
} // namespace dtrain::test

int main() {
    using namespace dtrain::test;
    const CMUnitTest tests[] = {cmocka_unit_test(a_device_waits_for_the_answer_to_its_goodbye),
                                cmocka_unit_test(it_does_not_wait_for_ever)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
