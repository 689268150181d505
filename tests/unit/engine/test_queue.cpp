// The completion queue: order, places, the descriptor.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "engine/completion_queue.h"
#include "engine/request.h"

#include <poll.h>

using namespace dtrain;
using namespace dtrain::engine;

namespace {

bool readable(const CompletionQueue &queue) {
    pollfd fd{queue.fd(), POLLIN, 0};
    return poll(&fd, 1, 0) == 1;
}

std::unique_ptr<CompletionQueue> make(uint32_t depth) {
    std::unique_ptr<CompletionQueue> queue;
    assert_int_equal(CompletionQueue::create(depth, queue), DTRAIN_OK);
    return queue;
}

void events_come_in_order(void **) {
    auto queue = make(4);
    dtrain_event_t got[4];
    uint64_t next = 0, expected = 0;
    for (uint32_t round = 0; round < 50; round++) {
        for (uint32_t i = 0; i < 1 + round % 4; i++) {
            assert_true(queue->reserve());
            Request request;
            request.queue = queue.get();
            request.user_tag = next++;
            request.complete({.status = DTRAIN_ERR_PEER, .peer = 3, .bytes = 7, .version = 9});
        }
        assert_true(readable(*queue));
        uint32_t n = queue->take(got, 4);
        assert_int_equal(n, 1 + round % 4);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(got[i].user_tag, expected++);
            assert_int_equal(got[i].status, DTRAIN_ERR_PEER);
            assert_int_equal(got[i].peer, 3);
            assert_int_equal(got[i].bytes, 7);
            assert_int_equal(got[i].version, 9);
            assert_null(got[i].request);
        }
        assert_false(readable(*queue));
        assert_false(queue->used());
    }
}

void what_is_left_stays_readable(void **) {
    auto queue = make(3);
    dtrain_event_t got[3];
    for (int i = 0; i < 3; i++) {
        assert_true(queue->reserve());
        queue->push({});
    }
    assert_int_equal(queue->take(got, 2), 2);
    assert_true(readable(*queue));
    assert_int_equal(queue->take(got, 2), 1);
    assert_false(readable(*queue));
    assert_int_equal(queue->take(got, 2), 0);
}

void places_are_bounded(void **) {
    auto queue = make(2);
    assert_true(queue->reserve() && queue->reserve());
    assert_false(queue->reserve()); // in flight counts
    queue->unreserve();
    assert_true(queue->reserve());
    queue->push({});
    assert_false(queue->reserve()); // not taken counts
    dtrain_event_t got;
    assert_int_equal(queue->take(&got, 1), 1);
    assert_true(queue->reserve());
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(events_come_in_order),
        cmocka_unit_test(what_is_left_stays_readable),
        cmocka_unit_test(places_are_bounded),
    };
    return cmocka_run_group_tests_name("completion queue", tests, nullptr, nullptr);
}
