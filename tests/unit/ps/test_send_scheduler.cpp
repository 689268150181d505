// Priorities of table operations: who goes first, how much is in flight, and that nobody waits for
// ever.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "ps/client/client_table.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

using namespace dtrain;
using namespace dtrain::ps;

namespace {

constexpr uint64_t bound = 512 << 10; // bytes in flight, as send_scheduler.h has it
constexpr uint64_t values = 2 << 20;  // of a table: 32 requests

// A wire that keeps what was sent; the test plays the server.
struct Job : Wire {
    Job() : client({.retry_ns = 1 * second}, *this) {}

    Status send(uint32_t, Outgoing &request) override {
        sent.push_back(&request);
        order += request.channel->table().name;
        kinds.push_back(request.header.kind);
        counts.push_back(request.header.count);
        return DTRAIN_OK;
    }
    void withdraw(uint32_t, Outgoing &request) override { withdrawn.push_back(&request); }

    ClientTable *open(const char *name, uint32_t consistency = DTRAIN_ASYNC) {
        TableParams params;
        params.length = values;
        params.dtype = DTRAIN_F32;
        params.consistency = consistency;
        ClientTable *table = nullptr;
        assert_int_equal(client.open(name, params, table), DTRAIN_OK);
        return table;
    }
    Transfer &start(ClientTable *table, RequestKind kind, Range range, int32_t priority = 0) {
        transfers.push_back(std::make_unique<Transfer>());
        Transfer &transfer = *transfers.back();
        transfer.kind = kind;
        transfer.table = table;
        transfer.range = range;
        transfer.priority = priority;
        transfer.send = transfer.receive = memory.data();
        transfer.done = [](Transfer *self) { self->owner = self; };
        if (priority != 0) client.use_priorities();
        client.start(transfer, now);
        return transfer;
    }
    void answer() { // the oldest
        assert_false(sent.empty());
        Outgoing &request = *sent.front();
        sent.pop_front();
        ResponseHeader header;
        header.kind = request.header.kind;
        header.table = request.header.table;
        header.sequence = request.header.sequence;
        const bool pulls = has_trait(request.header.kind, Trait::receives);
        header.count = pulls ? request.header.count : 0;
        const uint64_t bytes = pulls ? request.answer_bytes : 0;
        client.on_sent(request, now);
        assert_true(client.on_response(request, header, bytes, now));
    }
    void answer_all() {
        while (!sent.empty()) answer();
    }
    uint64_t bytes_in_flight() const {
        uint64_t bytes = 0;
        for (const Outgoing *request : sent)
            bytes += request->payload_bytes + request->answer_bytes;
        return bytes;
    }

    int64_t now = 1;
    std::vector<char> memory = std::vector<char>(values * 4);
    std::deque<Outgoing *> sent;
    std::vector<Outgoing *> withdrawn;
    std::string order; // names of tables, one letter for each request
    std::vector<RequestKind> kinds;
    std::vector<uint64_t> counts;
    std::vector<std::unique_ptr<Transfer>> transfers;
    Client client;
};

bool done(const Transfer &transfer) { return transfer.owner == &transfer; }

void without_priorities_the_window_is_filled(void **) {
    Job job;
    job.start(job.open("a"), RequestKind::push, {0, values});
    assert_int_equal(job.sent.size(), request_window);
    job.answer_all();
}

void the_urgent_one_overtakes(void **) {
    Job job;
    ClientTable *a = job.open("a"), *b = job.open("b");
    job.client.use_priorities();
    Transfer &low = job.start(a, RequestKind::push, {0, values});
    assert_int_equal(job.bytes_in_flight(), bound);
    Transfer &high = job.start(b, RequestKind::push, {0, values / 8}, 5); // 1 MiB
    assert_string_equal(job.order.c_str(), "aa");
    while (!done(high)) {
        job.answer();
        assert_in_range(job.bytes_in_flight(), 1, bound);
    }
    assert_string_equal(job.order.c_str(), "aabbbbaa"); // a goes on as soon as b is all on its way
    assert_false(done(low));
    job.answer_all();
    assert_true(done(low));
    assert_string_equal(job.order.substr(8).c_str(), std::string(28, 'a').c_str());
}

void pieces_of_one_table_too_but_never_across_a_clock(void **) {
    Job job;
    ClientTable *a = job.open("a", DTRAIN_BSP);
    job.client.use_priorities();
    Transfer &low = job.start(a, RequestKind::push, {0, values});
    Transfer &high = job.start(a, RequestKind::push, {0, 1000}, 1);
    Transfer &clock = job.start(a, RequestKind::clock, {});
    Transfer &next = job.start(a, RequestKind::push, {0, 500}, 9);
    job.answer(); // of low, which had two in flight
    assert_int_equal(job.sent.back()->header.count, 1000);
    while (!done(high)) job.answer();
    assert_false(done(low));
    job.answer_all();
    assert_true(done(low) && done(clock) && done(next));
    assert_int_equal(job.kinds.size(), 35);
    assert_true(job.kinds[33] == RequestKind::clock);
    assert_int_equal(job.counts[34], 500);
}

// Pulls that wait for other workers' clocks must not hold back what those wait for.
void pulls_that_may_wait_do_not_count(void **) {
    Job job;
    ClientTable *a = job.open("a", DTRAIN_BSP), *b = job.open("b", DTRAIN_BSP);
    job.client.use_priorities();
    job.start(a, RequestKind::pull, {0, values}, 2);
    assert_int_equal(job.sent.size(), request_window);
    job.start(b, RequestKind::push, {0, 100});
    assert_int_equal(job.sent.size(), request_window + 1);
    job.answer_all();
}

void who_waits_long_goes_on(void **) {
    Job job;
    ClientTable *a = job.open("a"), *b = job.open("b");
    job.start(a, RequestKind::push, {0, values}, 3);
    job.start(b, RequestKind::push, {0, values});
    assert_string_equal(job.order.c_str(), "aa");
    job.now += SendScheduler::patience;
    assert_true(job.client.next_timer() <= job.now);
    job.client.on_timer(job.now);
    assert_string_equal(job.order.c_str(), "aaab");
    job.answer_all();
}

void a_table_is_given_up_while_it_is_held(void **) {
    Job job;
    ClientTable *a = job.open("a"), *b = job.open("b");
    Transfer &first = job.start(a, RequestKind::push, {0, values}, 1);
    Transfer &held = job.start(b, RequestKind::push, {0, values});
    job.client.destroy(b, job.now);
    assert_true(done(held));
    assert_int_equal(held.status, DTRAIN_ERR_CANCELED);
    job.answer_all();
    assert_true(done(first));
    assert_true(job.client.idle());
}

} // namespace

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_priorities_the_window_is_filled),
        cmocka_unit_test(the_urgent_one_overtakes),
        cmocka_unit_test(pieces_of_one_table_too_but_never_across_a_clock),
        cmocka_unit_test(pulls_that_may_wait_do_not_count),
        cmocka_unit_test(who_waits_long_goes_on),
        cmocka_unit_test(a_table_is_given_up_while_it_is_held),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
