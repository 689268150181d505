// Which workers of a table are present, have joined or were lost, and whose create requests wait.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/membership.h"

#include "check.h"

using namespace dtrain::ps;

namespace {

RequestHeader create(uint32_t worker) {
    RequestHeader h;
    h.worker = worker;
    return h;
}

void it_is_complete_when_the_last_present_worker_has_joined(void **) {
    Membership members(3);
    for (uint32_t worker : {2u, 0u}) {
        members.ask(create(worker));
        members.join(worker);
        assert_false(members.complete());
    }
    assert_int_equal(members.first_asking(), 2);
    members.leave(1);
    assert_true(members.complete());
    const auto asking = members.take_asking();
    assert_int_equal(asking.size(), 2);
    assert_int_equal(asking[0].worker, 2);
    assert_int_equal(members.take_asking().size(), 0);
}

void a_worker_that_is_gone_asks_no_more(void **) {
    Membership members(2);
    members.ask(create(0));
    members.join(0);
    members.ask(create(1));
    members.lose(0);
    assert_false(members.present(0));
    assert_true(members.lost(0));
    assert_int_equal(members.count(), 1);
    assert_false(members.complete()); // worker 1 has asked, but not joined
    assert_int_equal(members.first_asking(), 1);
    members.leave(1);
    assert_false(members.lost(1));
    assert_int_equal(members.count(), 0);
    assert_int_equal(members.size(), 2);
    assert_int_equal(members.take_asking().size(), 0);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(it_is_complete_when_the_last_present_worker_has_joined),
        cmocka_unit_test(a_worker_that_is_gone_asks_no_more),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
