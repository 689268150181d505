// Bulk messages (transports/rdm) that are taken back while they are fetched.
// SPDX-License-Identifier: Apache-2.0
#include "looped_device.h"

namespace dtrain::test {
namespace {

// A message that is being fetched.
struct Fetched : Looped {
    explicit Fetched(bool breaks_off_any_time) {
        wire->attributes().breaks_off_any_time = breaks_off_any_time;
        sent.resize(wire->attributes().eager_limit + 1);
        got.resize(sent.size());
        receive();
        send();
        progress();
        assert_false(is_done(send_cookie) || is_done(receive_cookie));
    }
    size_t times(uint64_t cookie) const {
        return size_t(std::count_if(done.begin(), done.end(),
                                    [&](const auto &d) { return d.cookie == cookie; }));
    }
};

// The word of the sender's arrives, and before the wire has told of the end the receiver gives up.
void both_sides_withdraw_a_message(void **) {
    for (const bool any_time : {true, false})
        for (const bool receiver_first : {true, false}) {
            Fetched looped(any_time);
            if (receiver_first) looped.device.withdraw(receive_cookie);
            looped.device.withdraw(send_cookie);
            looped.progress(); // tells the sender,
            looped.progress(); // and brings its word
            if (!receiver_first) looped.device.withdraw(receive_cookie);
            for (int i = 0; i < 3; i++) looped.progress();
            assert_int_equal(looped.times(send_cookie), 1);
            assert_int_equal(looped.times(receive_cookie), 1);
            assert_int_equal(looped.status(send_cookie), DTRAIN_ERR_CANCELED);
            assert_int_equal(looped.status(receive_cookie), DTRAIN_ERR_CANCELED);
        }
}

void a_sender_withdraws_its_message(void **) {
    Fetched looped(false);
    looped.device.withdraw(send_cookie);
    for (int i = 0; i < 3; i++) looped.progress();
    assert_int_equal(looped.times(receive_cookie), 1);
    assert_true(looped.status(receive_cookie) != DTRAIN_OK);
}

} // namespace
} // namespace dtrain::test

int main() {
    using namespace dtrain::test;
    const CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_withdraw_a_message),
        cmocka_unit_test(a_sender_withdraws_its_message),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
