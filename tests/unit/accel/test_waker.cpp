// An accelerator that calls late: nothing but the eventfd that was meant is written to.
// SPDX-License-Identifier: Apache-2.0
#include "accel/waker.h"
#include "check.h"

#include <sys/eventfd.h>
#include <unistd.h>
#include <vector>

using namespace dtrain;
using namespace dtrain::accel;

namespace {

struct Late {
    dtrain_dv_call_fn fn;
    void *arg;
};
std::vector<Late> late;
bool refuses = false;

dtrain_status_t call_later(dtrain_dv_queue_t *, dtrain_dv_call_fn fn, void *arg) {
    if (refuses) return DTRAIN_ERR_DEVICE;
    late.push_back({fn, arg});
    return DTRAIN_OK;
}
dtrain_dv_ops_t ops_of_device() {
    dtrain_dv_ops_t ops = {};
    ops.call = call_later;
    return ops;
}

eventfd_t count_of(const Fd &fd) {
    eventfd_t count = 0;
    return eventfd_read(fd.get(), &count) == 0 ? count : 0;
}

void calls_may_come_after_the_owners_end(void **) {
    const dtrain_dv_ops_t ops = ops_of_device();
    const Fd asleep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    Waker::Owner waker;
    assert_int_equal(Waker::make(asleep.get(), waker), DTRAIN_OK);
    waker->call_after(ops, nullptr);
    waker->call_after(ops, nullptr);
    waker.reset();
    const Fd other(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); // the lowest number that is free
    for (const Late &one : late) one.fn(one.arg);
    assert_int_equal(count_of(asleep), 2);
    assert_int_equal(count_of(other), 0);
    const Fd again(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    assert_int_equal(again.get(), other.get() - 1); // nothing is left
}

void a_call_that_is_refused_keeps_nothing(void **) {
    dtrain_dv_ops_t ops = ops_of_device();
    const Fd asleep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    Waker::Owner waker;
    assert_int_equal(Waker::make(asleep.get(), waker), DTRAIN_OK);
    refuses = true;
    waker->call_after(ops, nullptr);
    ops.call = nullptr; // a device that cannot call
    waker->call_after(ops, nullptr);
    const int last = dup(asleep.get());
    close(last);
    waker.reset();
    const Fd next(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    assert_int_equal(next.get(), last - 1);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(calls_may_come_after_the_owners_end),
        cmocka_unit_test(a_call_that_is_refused_keeps_nothing),
    };
    return cmocka_run_group_tests_name("waker", tests, nullptr, nullptr);
}
