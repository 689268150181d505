// One process that is worker and server: whole operations against a model array.
// SPDX-License-Identifier: Apache-2.0
#include "ps/node/local_path.h"

#include "check.h"
#include "ps/client/client_table.h"

#include <cstring>
#include <random>
#include <vector>

using namespace dtrain::ps;

namespace {

class Process : public Wire {
  public:
    explicit Process(uint64_t memory_limit = 0, uint32_t workers = 1)
        : server({.index = 0, .servers = 1, .workers = workers, .memory_limit = memory_limit}),
          path(0), client({.retry_ns = 1000}, *this) {}

    dtrain::Status send(uint32_t, Outgoing &request) override {
        path.send(request);
        return DTRAIN_OK;
    }
    void withdraw(uint32_t, Outgoing &request) override { path.withdraw(request); }
    void settled(uint32_t, Outgoing &request) override { path.settled(request); }

    Transfer begin(ClientTable *table, RequestKind kind, Range range = {},
                   const void *values = nullptr, void *receive = nullptr) {
        Transfer transfer;
        transfer.kind = kind;
        transfer.table = table;
        transfer.range = range;
        transfer.send = values;
        transfer.receive = receive;
        transfer.owner = &completed;
        transfer.done = [](Transfer *self) { ++*static_cast<uint32_t *>(self->owner); };
        return transfer;
    }
    Transfer run(ClientTable *table, RequestKind kind, Range range = {},
                 const void *values = nullptr, void *receive = nullptr) {
        Transfer transfer = begin(table, kind, range, values, receive);
        uint32_t before = completed;
        client.start(transfer, now);
        path.run(client, server, out, ++now);
        assert_int_equal(completed, before + 1);
        return transfer;
    }
    ClientTable *make(const TableParams &params, const char *name = "t") {
        ClientTable *table = nullptr;
        assert_int_equal(client.open(name, params, table), DTRAIN_OK);
        return table;
    }

    Server server;
    LocalPath path;
    Client client;
    Responses out;
    uint32_t completed = 0;
    int64_t now = 0;
};

TableParams doubles(uint64_t length, uint32_t consistency) {
    TableParams params;
    params.length = length;
    params.dtype = DTRAIN_F64;
    params.consistency = consistency;
    return params;
}

void random_operations_match_an_array(uint32_t consistency) {
    constexpr uint64_t length = 300'000; // ten chunks
    std::mt19937_64 random(consistency);
    Process process;
    ClientTable *table = process.make(doubles(length, consistency));
    assert_int_equal(process.run(table, RequestKind::create).status, DTRAIN_OK);
    std::vector<double> model(length), next(length), sent(length), received(length);
    bool bsp = consistency == DTRAIN_BSP;
    auto clock = [&] { model = next; };
    for (int i = 0; i < 120; ++i) {
        uint64_t first = random() % length, count = 1 + random() % (length - first);
        for (uint64_t e = 0; e < count; ++e) sent[e] = double(random() % 1000);
        auto kind = RequestKind(3 + random() % 5);
        Transfer transfer = process.run(table, kind, {first, count}, sent.data(), received.data());
        assert_int_equal(transfer.status, DTRAIN_OK);
        for (uint64_t e = 0; e < count; ++e) {
            if (kind == RequestKind::push || kind == RequestKind::push_pull)
                next[first + e] += sent[e];
            if (kind == RequestKind::set) {
                next[first + e] += sent[e] - model[first + e]; // sums of the clock stay
                model[first + e] = sent[e];
            }
        }
        if (!bsp || kind == RequestKind::push_pull || kind == RequestKind::clock) clock();
        if (kind != RequestKind::pull && kind != RequestKind::push_pull) continue;
        for (uint64_t e = 0; e < count; ++e) assert_true(received[e] == model[first + e]);
    }
    process.client.destroy(table, process.now);
    process.path.run(process.client, process.server, process.out, process.now);
    assert_int_equal(process.server.memory_used(), 0);
    assert_true(process.client.idle());
}

void operations_match_an_array(void **) {
    random_operations_match_an_array(DTRAIN_ASYNC);
    random_operations_match_an_array(DTRAIN_BSP);
    random_operations_match_an_array(DTRAIN_SSP);
}

void versions_count_pushes(void **) {
    Process process;
    ClientTable *table = process.make(doubles(100'000, DTRAIN_ASYNC));
    process.run(table, RequestKind::create);
    std::vector<double> values(100'000, 1);
    for (uint64_t version = 1; version < 5; ++version) // however many chunks a push has
        assert_int_equal(process.run(table, RequestKind::push, {0, 100'000}, values.data()).version,
                         version);
    assert_int_equal(process.run(table, RequestKind::pull, {5, 1}, nullptr, values.data()).version,
                     4);
}

void errors_name_the_table_and_the_server(void **) {
    Process process(1000);
    ClientTable *table = process.make(doubles(1000, DTRAIN_ASYNC), "weights");
    Transfer transfer = process.run(table, RequestKind::create);
    assert_int_equal(transfer.status, DTRAIN_ERR_LIMIT);
    assert_string_equal(transfer.text.c_str(),
                        "table \"weights\": server 0: memory limit of the server (ps.memory): 8000 "
                        "bytes are needed, 1000 left");
    process.client.on_server_lost(0, "server 0 (host:1) lost: connection closed");
    transfer = process.run(table, RequestKind::clock);
    assert_int_equal(transfer.status, DTRAIN_ERR_PEER);
    assert_int_equal(transfer.server, 0);
    assert_string_equal(transfer.text.c_str(), "server 0 (host:1) lost: connection closed");
}

void nothing_to_move_is_done_at_once(void **) {
    Process process;
    ClientTable *table = process.make(doubles(10, DTRAIN_ASYNC));
    process.run(table, RequestKind::create);
    Transfer transfer = process.begin(table, RequestKind::push, {3, 0});
    uint32_t before = process.completed;
    process.client.start(transfer, 0);
    assert_int_equal(process.completed, before + 1);
    assert_int_equal(transfer.status, DTRAIN_OK);
}

void an_abandoned_pull_gives_its_memory_back(void **) {
    Process process;
    TableParams params = doubles(100'000, DTRAIN_SSP);
    ClientTable *table = process.make(params);
    process.run(table, RequestKind::create);
    std::vector<double> values(100'000);
    Transfer transfer =
        process.begin(table, RequestKind::pull, {0, 100'000}, nullptr, values.data());
    uint32_t before = process.completed;
    process.client.start(transfer, 0);
    process.client.abandon(transfer, DTRAIN_ERR_TIMEOUT, "too slow");
    process.path.run(process.client, process.server, process.out, 1);
    assert_int_equal(process.completed, before + 1);
    assert_int_equal(transfer.status, DTRAIN_ERR_TIMEOUT);
    assert_int_equal(process.run(table, RequestKind::push, {0, 1}, values.data()).status,
                     DTRAIN_OK);
}

// A table of two workers, of whom only the first has a client; its pull waits for the second.
class WaitingPull {
  public:
    WaitingPull() {
        others(RequestKind::create, 0, 0, table->create_payload);
        process.run(table, RequestKind::create);
        process.run(table, RequestKind::clock);
        pull = process.begin(table, RequestKind::pull, {0, 10}, nullptr, values.data());
        process.client.start(pull, process.now);
        run();
        assert_true(values[0] == 7);
    }
    void others(RequestKind kind, uint32_t id, uint64_t sequence, const std::string &payload = "") {
        RequestHeader header;
        header.kind = kind;
        header.table = id;
        header.worker = 1;
        header.sequence = sequence;
        process.server.on_request(1, header, payload.data(), payload.size(), process.out);
    }
    void run() {
        process.path.run(process.client, process.server, process.out, process.now);
        process.out.clear();
    }
    void repeat() { process.client.on_timer(process.now += 10'000); }
    // Nothing may look at the table's requests any more (a sanitizer sees it).
    void make_another_table() {
        process.client.destroy(table, process.now);
        run();
        assert_true(process.client.idle());
        ClientTable *next = process.make(doubles(10, DTRAIN_SSP), "next");
        others(RequestKind::create, next->id, 0, next->create_payload);
        process.run(next, RequestKind::create);
    }

    Process process{0, 2};
    ClientTable *table = process.make(doubles(10, DTRAIN_SSP));
    std::vector<double> values = std::vector<double>(10, 7);
    Transfer pull;
};

void a_repeated_request_is_not_remembered(void **) {
    WaitingPull its;
    for (int i = 0; i < 2; i++) {
        its.repeat();
        its.run();
    }
    assert_true(its.values[0] == 7);
    its.others(RequestKind::clock, 0, 1);
    its.run();
    assert_true(its.values[0] == 0);
    its.make_another_table();
}

// The other worker's clock releases the answer when the repetition is on its way.
void an_answer_that_crosses_a_repetition_settles_the_request(void **) {
    WaitingPull its;
    its.repeat();
    its.others(RequestKind::clock, 0, 1);
    its.run();
    assert_true(its.values[0] == 0);
    its.make_another_table();
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(operations_match_an_array),
        cmocka_unit_test(versions_count_pushes),
        cmocka_unit_test(errors_name_the_table_and_the_server),
        cmocka_unit_test(nothing_to_move_is_done_at_once),
        cmocka_unit_test(an_abandoned_pull_gives_its_memory_back),
        cmocka_unit_test(a_repeated_request_is_not_remembered),
        cmocka_unit_test(an_answer_that_crosses_a_repetition_settles_the_request),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
