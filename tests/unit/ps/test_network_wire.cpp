// A client's requests on a real transport: nothing is used up by tables that come and go, late
// answers do not pile up, and an answer that was cut is an error at once.
// SPDX-License-Identifier: Apache-2.0
#include "ps/client/client_table.h"
#include "ps/node/network_wire.h"
#include "ps/node/pack.h"
#include "ps/node/server_port.h"
#include "unit/processes.h"

#include <cstring>
#include <string>
#include <vector>

using namespace dtrain;
using namespace dtrain::ps;

namespace {

constexpr uint32_t worker_member = 0, server_member = 1;
constexpr uint64_t length = 512;   // values of a table: more than go in packs
constexpr uint64_t room = 8 << 10; // for a payload

// The worker's process, and the one that serves it.
struct Job : Wire {
    // eager: bytes of messages that need no receive.
    explicit Job(const char *network, const char *eager = "65536")
        : worker(clock, {"sim"}, {{"plugin.sim.network", network}, {"plugin.sim.eager", eager}}),
          server(clock, {"sim"}, {{"plugin.sim.network", network}, {"plugin.sim.eager", eager}}),
          wire(worker.agent, worker.mesh, worker_member, servers),
          client({.retry_ns = 500 * ms}, *this) {
        connect({&worker, &server});
        worker.agent.locked([&] { assert_int_equal(wire.open(client), DTRAIN_OK); });
    }
    Status send(uint32_t s, Outgoing &request) override { return wire.send(s, request); }
    void withdraw(uint32_t s, Outgoing &request) override { wire.withdraw(s, request); }
    void settled(uint32_t s, Outgoing &request) override { wire.settled(s, request); }

    ClientTable *open(const char *name = "t") {
        TableParams params;
        params.length = length;
        params.dtype = DTRAIN_F64;
        params.consistency = DTRAIN_ASYNC;
        ClientTable *table = nullptr;
        assert_int_equal(client.open(name, params, table), DTRAIN_OK);
        return table;
    }
    void start(Transfer &transfer) {
        transfer.done = [](Transfer *self) { self->owner = self; };
        worker.agent.locked([&] { client.start(transfer, clock.now); });
    }
    void work(int rounds = 200) {
        for (; rounds > 0; rounds--) {
            poll({&worker, &server}, 1);
            worker.agent.locked([&] {
                wire.run();
                if (clock.now >= client.next_timer()) client.on_timer(clock.now);
            });
        }
    }
    void pass(int64_t time) {
        clock.now += time;
        work();
    }

    TestClock clock;
    Process worker, server;
    const ServerList servers{{server_member}};
    NetworkWire wire;
    Client client;
};

bool done(const Transfer &transfer) { return transfer.owner == &transfer; }

// Ends when the transport says so.
struct Landing : engine::Completion {
    Landing() {
        done = [](engine::Completion *self, const dtrain_tp_done_t &event) {
            auto &landing = *static_cast<Landing *>(self);
            landing.over = true;
            landing.bytes = event.bytes;
            landing.status = event.status;
        };
    }
    bool over = false;
    uint64_t bytes = 0;
    Status status = DTRAIN_OK;
};

// A server played by the test: takes one request, and answers as it is told.
struct Script {
    explicit Script(Job &played) : job(played) {}
    RequestHeader take() {
        std::vector<char> buffer(sizeof(RequestHeader) + room);
        dtrain_tp_iov_t iov = {.addr = buffer.data(), .len = buffer.size(), .mr = nullptr};
        Landing landing;
        job.server.agent.locked([&] {
            assert_int_equal(job.server.mesh.recv(worker_member, request_tag(worker_member),
                                                  engine::exact, &iov, 1, &landing),
                             DTRAIN_OK);
        });
        job.work();
        assert_true(landing.over);
        RequestHeader header;
        if (is_pack(buffer.data(), landing.bytes)) {
            auto copy = [&](const RequestHeader &packed, const char *, uint64_t) {
                header = packed;
            };
            assert_true(unpack<RequestHeader>(buffer.data(), landing.bytes, copy));
        } else {
            std::memcpy(&header, buffer.data(), sizeof header);
        }
        return header;
    }
    // The first `bytes` of the answer to this request: header and count zeroes.
    uint8_t version = protocol_version; // of the server
    void answer(const RequestHeader &request, uint64_t count, uint64_t bytes) {
        std::vector<char> buffer(sizeof(ResponseHeader) + room);
        ResponseHeader header;
        header.kind = request.kind;
        header.table = request.table;
        header.sequence = request.sequence;
        header.count = count;
        header.version = version;
        std::memcpy(buffer.data(), &header, sizeof header);
        if ((request.flags & packed_answer) == 0)
            return send(answer_tag(server_member, request.table, request.sequence), buffer.data(),
                        bytes);
        Pack pack;
        pack.add(header, nullptr, 0);
        send(packed_answers_tag(server_member), pack.data(), pack.size());
    }
    void send(uint64_t tag, char *message, uint64_t bytes) {
        dtrain_tp_iov_t iov = {.addr = message, .len = bytes, .mr = nullptr};
        Landing landing;
        Status sent = DTRAIN_ERR_BUSY; // until there is a connection
        for (int i = 0; i < 100 && sent == DTRAIN_ERR_BUSY; i++) {
            job.server.agent.locked(
                [&] { sent = job.server.mesh.send(worker_member, tag, &iov, 1, &landing); });
            job.work();
        }
        assert_int_equal(sent, DTRAIN_OK);
        assert_true(landing.over);
    }
    // Whether the worker keeps an answer that nobody waits for.
    bool kept() {
        char byte;
        dtrain_tp_iov_t iov = {.addr = &byte, .len = 1, .mr = nullptr};
        Landing landing;
        auto &mesh = job.worker.mesh;
        job.worker.agent.locked([&] {
            assert_int_equal(mesh.recv(server_member, answer_tag(server_member, 0, 0),
                                       ~engine::low(~uint64_t{0}, 37), &iov, 1, &landing),
                             DTRAIN_OK);
        });
        poll({&job.worker, &job.server});
        bool found = landing.over;
        job.worker.agent.locked([&] { mesh.cancel(server_member, &landing); });
        poll({&job.worker, &job.server});
        assert_true(landing.over);
        return found;
    }
    Job &job;
};

constexpr uint64_t pull_bytes = sizeof(ResponseHeader) + length * sizeof(double);

void tables_that_come_and_go_use_nothing_up(void **) {
    Job job("tables");
    Server server({.index = 0, .servers = 1, .workers = 1, .memory_limit = 0});
    ServerPort port(job.server.agent, job.server.mesh, server, server_member, 1);
    job.server.agent.locked([&] { assert_int_equal(port.open(), DTRAIN_OK); });
    auto serve = [&](auto &&over) {
        for (int i = 0; i < 1000 && !over(); i++) {
            job.server.agent.locked([&] { port.send(), port.retry(); });
            job.work(1);
        }
        assert_true(over());
    };
    for (int i = 0; i < 5000; i++) {
        ClientTable *table = job.open();
        Transfer create;
        create.kind = RequestKind::create;
        create.table = table;
        job.start(create);
        serve([&] { return done(create); });
        assert_int_equal(create.status, DTRAIN_OK);
        job.worker.agent.locked([&] { job.client.destroy(table, job.clock.now); });
        serve([&] { return job.client.idle(); });
    }
    assert_true(job.wire.slots() <= 2);
    assert_int_equal(server.memory_used(), 0);
    job.server.agent.locked([&] { port.close(); });
    poll({&job.worker, &job.server});
    assert_true(port.idle() && job.wire.idle());
}

Transfer pull(ClientTable *table, double *values) {
    Transfer transfer;
    transfer.kind = RequestKind::pull;
    transfer.table = table;
    transfer.range = {0, length};
    transfer.receive = values;
    return transfer;
}

void late_answers_do_not_pile_up(void **) {
    Job job("late");
    Script script(job);
    double values[length];
    Transfer transfer = pull(job.open(), values);
    job.start(transfer);
    RequestHeader request = script.take();
    for (int i = 0; i < 3; i++) { // no answer: it asks again
        job.pass(5 * second);
        assert_int_equal(script.take().sequence, request.sequence);
    }
    script.answer(request, length, pull_bytes);
    assert_true(done(transfer));
    assert_int_equal(transfer.status, DTRAIN_OK);
    script.answer(request, length, pull_bytes); // soon after
    job.pass(1 * second);
    assert_false(script.kept());
    job.pass(10 * second);
    script.answer(request, length, pull_bytes); // and long after
    script.answer(request, length, pull_bytes);
    job.pass(1 * second);
    assert_false(script.kept());
    assert_true(job.wire.idle());
}

void an_answer_that_was_cut_is_an_error_at_once(void **) {
    struct {
        uint64_t bytes;
        const char *text;
    } const cases[] = {
        {pull_bytes - 1,
         "table \"weights\": server 0: truncated answer: 4095 bytes of values, 4096 expected"},
        {sizeof(ResponseHeader),
         "table \"weights\": server 0: truncated answer: 0 bytes of values, 4096 expected"},
        {sizeof(ResponseHeader) - 1,
         "table \"weights\": server 0: truncated answer: 63 bytes, less than a header"},
        {0, "table \"weights\": server 0: truncated answer: 0 bytes, less than a header"},
        {pull_bytes + 8,
         "table \"weights\": server 0: oversized answer: 4104 bytes of values, 4096 expected"},
    };
    Job job("cut");
    Script script(job);
    ClientTable *table = job.open("weights");
    for (auto &[bytes, text] : cases) {
        double values[length];
        Transfer transfer = pull(table, values);
        job.start(transfer);
        script.answer(script.take(), length, bytes);
        assert_true(done(transfer));
        assert_int_equal(transfer.status, DTRAIN_ERR_CORRUPT);
        assert_int_equal(transfer.server, 0);
        assert_string_equal(transfer.text.c_str(), text);
    }
    double values[length]; // the table goes on
    Transfer transfer = pull(table, values);
    job.start(transfer);
    script.answer(script.take(), length, pull_bytes);
    assert_true(done(transfer) && transfer.status == DTRAIN_OK);
    assert_true(job.wire.idle());
}

void a_server_of_another_version_is_named(void **) {
    Job job("version");
    Script script(job);
    ClientTable *table = job.open("weights");
    double values[length];
    for (int other : {protocol_version - 1, protocol_version + 1, 255}) {
        const auto version = uint8_t(other);
        script.version = version;
        Transfer transfer = pull(table, values);
        job.start(transfer);
        script.answer(script.take(), length, pull_bytes);
        assert_true(done(transfer));
        assert_int_equal(transfer.status, DTRAIN_ERR_VERSION);
        const std::string due =
            "the worker's libdtrain speaks version " + std::to_string(protocol_version) +
            " of the table protocol, the server's version " + std::to_string(version);
        assert_non_null(strstr(transfer.text.c_str(), due.c_str()));
    }
}

// The answer to a pull that was given up fits no receive any more; the cancel still gets its own.
void an_answer_to_what_was_canceled_is_not_corrupt(void **) {
    Job job("cancel");
    Script script(job);
    ClientTable *table = job.open();
    double values[length];
    Transfer transfer = pull(table, values);
    job.start(transfer);
    RequestHeader request = script.take();
    job.worker.agent.locked([&] { job.client.abandon(transfer, DTRAIN_ERR_TIMEOUT, "late"); });
    job.work();
    assert_true(done(transfer) && transfer.status == DTRAIN_ERR_TIMEOUT);
    RequestHeader cancel = script.take();
    assert_int_equal(cancel.kind, RequestKind::cancel);
    script.answer(request, length, pull_bytes);
    assert_false(job.client.idle()); // it was not for the cancel
    script.answer(cancel, 0, sizeof(ResponseHeader));
    assert_true(job.client.idle() && job.wire.idle());
    job.pass(1 * second);
    assert_false(script.kept());
}

// What a server of its own says to many small requests at a time.
struct Served {
    explicit Served(const char *network, uint64_t peer_limit = 0, const char *eager = "65536")
        : job(network, eager),
          server({.index = 0, .servers = 1, .workers = 1, .peer_limit = peer_limit}),
          port(job.server.agent, job.server.mesh, server, server_member, 1) {
        job.server.agent.locked([&] { assert_int_equal(port.open(), DTRAIN_OK); });
        table = job.open();
        Transfer create;
        create.kind = RequestKind::create;
        create.table = table;
        job.start(create);
        work();
        assert_true(done(create) && create.status == DTRAIN_OK);
    }
    ~Served() {
        job.worker.agent.locked([&] { job.client.destroy(table, job.clock.now); });
        work();
        job.server.agent.locked([&] { port.close(); });
        job.worker.agent.locked([&] { job.wire.close(); });
        poll({&job.worker, &job.server});
        job.worker.agent.locked([&] { assert_true(job.wire.close()); });
        assert_true(port.idle() && job.client.idle());
    }
    void work(int rounds = 200) {
        for (; rounds > 0; rounds--) {
            job.server.agent.locked([&] { port.send(), port.retry(); });
            job.work(1);
        }
    }
    Job job;
    Server server;
    ServerPort port;
    ClientTable *table = nullptr;
};

void small_requests_share_messages(void **) {
    Served served("packs");
    constexpr uint64_t count = 300; // more than fit in a pack, and than may be in flight
    std::vector<double> pushed(count), pulled(count);
    std::vector<Transfer> transfers(count);
    for (RequestKind kind : {RequestKind::push, RequestKind::pull}) {
        for (uint64_t i = 0; i < count; i++) {
            pushed[i] = double(i) + 1;
            transfers[i] = {};
            transfers[i].kind = kind;
            transfers[i].table = served.table;
            transfers[i].range = {i, 1};
            transfers[i].send = &pushed[i];
            transfers[i].receive = &pulled[i];
            served.job.start(transfers[i]);
        }
        served.work(1000);
        for (const Transfer &transfer : transfers)
            assert_true(done(transfer) && transfer.status == DTRAIN_OK);
    }
    assert_true(pulled == pushed);
    assert_int_equal(served.job.wire.slots(), 0); // no receive was posted for any of them
    const PeerMemory &memory = served.server.peers()[worker_member];
    assert_int_equal(memory.held(), 0);
    assert_int_not_equal(memory.most_held(), 0); // packs
}

void what_is_in_a_pack_can_be_given_up(void **) {
    Served served("giving up");
    double values[2] = {1, 2};
    Transfer transfers[2]; // one on its way at once, one in the next pack
    for (int i = 0; i < 2; i++) {
        transfers[i].kind = RequestKind::push;
        transfers[i].table = served.table;
        transfers[i].range = {0, 1};
        transfers[i].send = &values[i];
        served.job.start(transfers[i]);
    }
    served.job.worker.agent.locked([&] {
        for (Transfer &transfer : transfers)
            served.job.client.abandon(transfer, DTRAIN_ERR_CANCELED, "given up");
    });
    served.work();
    for (const Transfer &transfer : transfers)
        assert_true(done(transfer) && transfer.status == DTRAIN_ERR_CANCELED);
    assert_true(served.job.client.idle() && served.job.wire.idle()); // settled with the server
}

// Whoever sends nonsense hurts nobody.
void malformed_packs_are_ignored(void **) {
    Served served("nonsense");
    Script script(served.job);
    Pack good;
    ResponseHeader header;
    good.add(header, "12345", 5);
    const uint64_t size = good.size();
    size_t taken = 0;
    for (uint64_t cut = sizeof pack_begin; cut <= size; cut++) {
        auto take = [&](const ResponseHeader &, const char *payload, uint64_t bytes) {
            assert_true(bytes == 5 && std::memcmp(payload, "12345", 5) == 0);
            taken++;
        };
        const bool well_formed = unpack<ResponseHeader>(good.data(), cut, take);
        assert_int_equal(well_formed, cut == size || cut == sizeof pack_begin);
    }
    assert_int_equal(taken, 1);
    for (uint64_t bytes : {most_packed + 1, UINT64_MAX, UINT64_MAX - 6}) {
        Pack bad;
        bad.add(header, "12345", 5);
        std::memcpy(bad.data() + sizeof pack_begin, &bytes, sizeof bytes);
        assert_false(
            unpack<ResponseHeader>(bad.data(), bad.size(), [](auto &&...) { assert_true(false); }));
        script.send(packed_answers_tag(server_member), bad.data(), bad.size());
    }
    for (uint32_t table : {0u, 1u, UINT32_MAX})
        for (uint64_t sequence : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) { // to no request
            Pack pack;
            header.table = table;
            header.sequence = sequence;
            pack.add(header, "12345", 5);
            script.send(packed_answers_tag(server_member), pack.data(), pack.size());
        }
    double value = 3;
    Transfer transfer;
    transfer.kind = RequestKind::push;
    transfer.table = served.table;
    transfer.range = {7, 1};
    transfer.send = &value;
    served.job.start(transfer);
    served.work();
    assert_true(done(transfer) && transfer.status == DTRAIN_OK);
}

// Not what a client of ours asks for: the answer comes by itself, and the server lives.
void a_large_answer_is_never_packed(void **) {
    Served served("large");
    RequestHeader pull;
    pull.kind = RequestKind::pull;
    pull.table = served.table->id;
    pull.worker = worker_member;
    pull.sequence = 1;
    pull.count = length;
    pull.flags = packed_answer;
    std::vector<char> buffer(pull_bytes);
    dtrain_tp_iov_t out = {.addr = &pull, .len = sizeof pull, .mr = nullptr};
    dtrain_tp_iov_t in = {.addr = buffer.data(), .len = buffer.size(), .mr = nullptr};
    Landing sent, answered;
    served.job.worker.agent.locked([&] {
        auto &mesh = served.job.worker.mesh;
        assert_int_equal(mesh.recv(server_member, answer_tag(server_member, pull.table, 1),
                                   engine::exact, &in, 1, &answered),
                         DTRAIN_OK);
        assert_int_equal(mesh.send(server_member, request_tag(worker_member), &out, 1, &sent),
                         DTRAIN_OK);
    });
    served.work();
    assert_true(sent.over && answered.over);
    assert_int_equal(answered.bytes, pull_bytes);
}

// A process that serves leaves when its part of a collective is done, which the others hear before
// they hear that it has what they sent.
void a_server_that_leaves_ends_no_message_of_others(void **) {
    Job job("leaving", "16"); // a longer message needs a receive
    ClientTable *table = job.open();
    double values[length] = {};
    Transfer packed, large = pull(table, values);
    packed.kind = RequestKind::push;
    packed.table = table;
    packed.range = {0, 1};
    packed.send = values;
    job.start(packed);
    job.start(large);
    std::vector<char> out(room, 'x'), in(room);
    const uint64_t tag = engine::make_tag(1, worker_member, engine::TagClass::collective, 0);
    dtrain_tp_iov_t from = {.addr = out.data(), .len = room, .mr = nullptr};
    dtrain_tp_iov_t to = {.addr = in.data(), .len = room, .mr = nullptr};
    Landing sent, received;
    job.work();
    job.worker.agent.locked([&] {
        assert_int_equal(job.worker.mesh.send(server_member, tag, &from, 1, &sent), DTRAIN_OK);
    });
    job.work();
    assert_false(sent.over || job.wire.idle());
    job.worker.agent.locked([&] {
        job.client.on_server_lost(0, "rank 1 has left the job");
        job.wire.drop(0);
    });
    job.work();
    assert_false(sent.over);
    for (const Transfer *transfer : {&packed, &large})
        assert_true(done(*transfer) && transfer->status == DTRAIN_ERR_PEER);
    assert_true(job.wire.idle()); // the tables' messages have ended, also the pack
    job.server.agent.locked([&] {
        assert_int_equal(job.server.mesh.recv(worker_member, tag, engine::exact, &to, 1, &received),
                         DTRAIN_OK);
    });
    job.work();
    assert_true(sent.over && sent.status == DTRAIN_OK);
    assert_true(received.over && received.status == DTRAIN_OK && in == out);
}

// Asks again and again, and takes no answer.
void who_takes_no_answers_makes_no_more(void **) {
    for (uint64_t limit : {uint64_t{0}, uint64_t{64} << 10}) {
        Served served(limit == 0 ? "deaf" : "deaf, limited", limit, "1024");
        RequestHeader pull;
        pull.kind = RequestKind::pull;
        pull.table = served.table->id;
        pull.worker = worker_member;
        pull.sequence = 1;
        pull.count = length;
        dtrain_tp_iov_t iov = {.addr = &pull, .len = sizeof pull, .mr = nullptr};
        const PeerMemory &memory = served.server.peers()[worker_member];
        for (int i = 0; i < 3000; i++) {
            Landing sent;
            served.job.worker.agent.locked([&] {
                assert_int_equal(served.job.worker.mesh.send(
                                     server_member, request_tag(worker_member), &iov, 1, &sent),
                                 DTRAIN_OK);
            });
            served.work(2);
            assert_true(sent.over);
        }
        served.work();
        if (limit == 0)
            assert_true(memory.held() > limit + chunk_bytes + 4096);
        else
            assert_in_range(memory.held(), limit + chunk_bytes, limit + chunk_bytes + 4096);
        served.job.server.agent.locked([&] { served.job.server.mesh.drop(worker_member); });
        served.work();
        assert_int_equal(memory.held(), 0);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(tables_that_come_and_go_use_nothing_up),
        cmocka_unit_test(late_answers_do_not_pile_up),
        cmocka_unit_test(an_answer_that_was_cut_is_an_error_at_once),
        cmocka_unit_test(a_server_of_another_version_is_named),
        cmocka_unit_test(an_answer_to_what_was_canceled_is_not_corrupt),
        cmocka_unit_test(small_requests_share_messages),
        cmocka_unit_test(what_is_in_a_pack_can_be_given_up),
        cmocka_unit_test(malformed_packs_are_ignored),
        cmocka_unit_test(a_large_answer_is_never_packed),
        cmocka_unit_test(a_server_that_leaves_ends_no_message_of_others),
        cmocka_unit_test(who_takes_no_answers_makes_no_more),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
