// What a server keeps of a worker's requests: those that wait, and error texts for repetitions.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/request_log.h"
#include "ps/server/waiting_room.h"

#include "check.h"

#include <vector>

using namespace dtrain::ps;

namespace {

RequestHeader request(uint32_t worker, uint64_t sequence) {
    RequestHeader h;
    h.worker = worker;
    h.sequence = sequence;
    return h;
}

void waiting_requests_are_charged_until_they_go(void **) {
    PeerMemory memory(0), other(0);
    WaitingRoom room;
    Answered::Entry parked, held;
    room.park(request(0, 1), parked, memory);
    room.hold(request(0, 2), held, memory);
    room.park(request(1, 1), parked, other);
    assert_int_equal(parked.progress, Progress::parked);
    assert_int_equal(held.progress, Progress::held);
    assert_true(memory.held() > 0);
    assert_int_equal(memory.held(), 2 * other.held());
    room.forget(0, 2);
    assert_int_equal(memory.held(), other.held());
    room.leave(0);
    assert_int_equal(memory.held(), 0);
    assert_int_equal(room.size(), 1);
    room.visit_parked([](const RequestHeader &h) { return h.worker == 1; });
    assert_int_equal(other.held(), 0);
    assert_int_equal(room.size(), 0);
}

void a_request_without_room_is_as_if_it_were_lost(void **) {
    PeerMemory memory(1);
    WaitingRoom room;
    Answered::Entry entry;
    room.park(request(0, 1), entry, memory);
    room.hold(request(0, 1), entry, memory);
    assert_int_equal(entry.progress, Progress::unseen);
    assert_int_equal(room.size(), 0);
    assert_int_equal(memory.held(), 0);
}

void requests_are_visited_in_their_order(void **) {
    PeerMemory memory(0);
    WaitingRoom room;
    Answered::Entry entry;
    for (uint64_t i = 1; i <= 4; ++i) room.hold(request(0, i), entry, memory);
    std::vector<uint64_t> seen;
    auto even = [&](const RequestHeader &h) {
        seen.push_back(h.sequence);
        return h.sequence % 2 == 0;
    };
    room.visit_parked(even);
    assert_int_equal(seen.size(), 0);
    room.visit_held(even);
    room.visit_held(even);
    assert_true(seen == (std::vector<uint64_t>{1, 2, 3, 4, 1, 3}));
}

std::shared_ptr<const Buffer> text_of(uint64_t bytes) {
    auto text = std::make_shared<Buffer>();
    assert_true(text->allocate(bytes));
    return text;
}

void texts_are_kept_as_long_as_their_requests(void **) {
    PeerMemory memory(0);
    RequestLog log;
    log.answered().entry(1).progress = Progress::done;
    const auto first = text_of(8);
    assert_true(log.keep_text(1, first, memory));
    assert_ptr_equal(log.text(1).get(), first.get());
    assert_int_equal(memory.held(), first->bytes());
    log.answered().entry(1 + request_window); // request 1 is forgotten
    const auto second = text_of(8);
    assert_true(log.keep_text(1 + request_window, second, memory));
    assert_int_equal(memory.held(), second->bytes());
    log.clear();
    assert_int_equal(memory.held(), 0);
    assert_null(log.parked(1 + request_window));
    assert_int_equal(log.answered().newest(), 0);
}

void a_text_beyond_the_limit_is_not_kept(void **) {
    PeerMemory memory(1);
    RequestLog log;
    log.answered().entry(1);
    assert_false(log.keep_text(1, text_of(8), memory));
    assert_int_equal(memory.held(), 0);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(waiting_requests_are_charged_until_they_go),
        cmocka_unit_test(a_request_without_room_is_as_if_it_were_lost),
        cmocka_unit_test(requests_are_visited_in_their_order),
        cmocka_unit_test(texts_are_kept_as_long_as_their_requests),
        cmocka_unit_test(a_text_beyond_the_limit_is_not_kept),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
