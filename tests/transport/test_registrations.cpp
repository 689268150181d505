// Registered memory of the transports over libraries of RDMA, by address.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "rdm/registrations.h"

namespace {

using dtrain::rdm::Registered;
using dtrain::rdm::Registrations;
using dtrain::tp::IovCursor;

uint8_t bytes[1000];

Registered registered(size_t at, size_t length) {
    Registered one;
    one.start = reinterpret_cast<uintptr_t>(bytes + at);
    one.length = length;
    return one;
}

IovCursor of(size_t at, size_t length, dtrain_tp_mr_t *mr = nullptr) {
    const dtrain_tp_iov_t iov{bytes + at, length, mr};
    IovCursor memory;
    memory.assign(&iov, 1, length);
    return memory;
}

void found_by_name_or_address(void **) {
    Registrations all;
    Registered wide = registered(0, 1000), narrow = registered(100, 50), late = registered(400, 10);
    for (Registered *one : {&wide, &narrow, &late}) assert_true(all.add(one));
    assert_int_equal(all.count(), 3);
    assert_int_equal(all.bytes(), 1060);
    assert_ptr_equal(all.find(of(110, 20), bytes + 110, 20), &narrow);
    assert_ptr_equal(all.find(of(110, 20, &wide), bytes + 110, 20), &wide);
    // One that is named and does not reach so far; behind others that do not, either.
    assert_ptr_equal(all.find(of(140, 20, &narrow), bytes + 140, 20), &wide);
    assert_ptr_equal(all.find(of(600, 400), bytes + 600, 400), &wide);
    all.remove(&wide);
    assert_null(all.find(of(140, 20), bytes + 140, 20));
    assert_null(all.find(of(600, 400), bytes + 600, 400));
    assert_int_equal(all.bytes(), 60);
}

// An operation's memory is used again: that of a message without bytes has what it had before.
void nothing_is_in_none(void **) {
    Registrations all;
    Registered one = registered(0, 1000);
    assert_true(all.add(&one));
    IovCursor memory = of(0, 10, reinterpret_cast<dtrain_tp_mr_t *>(alignof(Registered)));
    memory.assign(nullptr, 0, 0);
    assert_null(all.find(memory, nullptr, 0));
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(found_by_name_or_address),
        cmocka_unit_test(nothing_is_in_none),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
