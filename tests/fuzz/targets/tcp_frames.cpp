// Transport tcp after the handshake: a peer's frames, bare or in records.
// SPDX-License-Identifier: Apache-2.0
//
// Input: flags, then steps: bytes from the peer, and what the program does meanwhile.
#include "tests/fuzz/host_services.h"

#include "tcp/connection.h"

#include <sys/socket.h>

using namespace dtrain;
using fuzz::Bytes;

namespace {

enum class Step : uint8_t { frame, raw, receive, send, take, withdraw, read, count };
constexpr size_t most_pending = 64;

fuzz::HostServices &services() {
    static auto *all = new fuzz::HostServices("\1\2\3", protection::Level::integrity);
    return *all; // for the process's life
}

struct Rig {
    explicit Rig(bool protects) : shared(services().table(), "tcp"), host(services().table()) {
        shared.eager_limit = 16;
        FUZZ_REQUIRE(shared.poller.open());
        int ends[2];
        FUZZ_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
        peer = tp::Fd(ends[1]);
        tcp::Route route{tp::Fd(ends[0]), {}};
        if (protects) agree(route.guard);
        FUZZ_REQUIRE(connection.establish(std::move(route)));
    }
    void agree(tp::Guard &own) {
        tp::Offer first, second;
        FUZZ_REQUIRE(own.begin(host, &first) == DTRAIN_OK &&
                     guard.begin(host, &second) == DTRAIN_OK);
        FUZZ_REQUIRE(own.agree(true, second, "", 0) == DTRAIN_OK);
        FUZZ_REQUIRE(guard.agree(false, first, "", 0) == DTRAIN_OK);
    }
    void say(const Bytes &bytes) {
        if (bytes.empty()) return;
        Bytes out = bytes;
        if (guard) {
            out.assign(bytes.size() + tp::record_overhead, 0);
            std::copy(bytes.begin(), bytes.end(), out.begin() + long(tp::record_header));
            guard.seal(out.data(), bytes.size());
        }
        (void)!::send(peer.get(), out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    void hear() {
        uint8_t dropped[4096];
        while (recv(peer.get(), dropped, sizeof dropped, MSG_DONTWAIT) > 0) {
        }
    }
    uint64_t place(size_t length) {
        places.emplace_back(length);
        return places.size() - 1;
    }
    void receive(uint64_t tag, uint64_t mask, size_t length) {
        const uint64_t cookie = place(length);
        const dtrain_tp_iov_t iov{places[cookie].data(), length, nullptr};
        protocol::Receives::Match match;
        FUZZ_REQUIRE(shared.receives.post(tag, mask, &iov, 1, length, cookie, &match));
        pending++;
        if (match.message) pass(match.message, match.receive);
    }
    void take(uint64_t tag, uint64_t mask) {
        if (tp::Message *message = shared.receives.take(tag, mask)) pass(message, nullptr);
    }
    void pass(tp::Message *message, tp::Receive *receive) {
        if (message->origin)
            connection.taken(message, receive);
        else
            tcp::Connection::deliver(shared, message, receive);
    }
    void send(uint64_t tag, size_t length) {
        tcp::Send *one = shared.sends.get();
        FUZZ_REQUIRE(one && shared.completions.reserve(1));
        one->tag = tag;
        one->length = length;
        one->cookie = place(length);
        const dtrain_tp_iov_t iov{places[one->cookie].data(), length, nullptr};
        one->from.assign(&iov, 1, length);
        pending++;
        connection.post(one);
    }
    // What is complete is freed, so that a sanitizer sees who uses it after that.
    void reap() {
        dtrain_tp_done_t done;
        while (shared.completions.pop(&done, 1) == 1) {
            FUZZ_REQUIRE(done.cookie < places.size() && pending > 0);
            Bytes().swap(places[done.cookie]);
            pending--;
        }
    }

    tcp::Shared shared;
    tp::Host host;
    tp::Fd peer;
    tp::Guard guard; // the peer's
    tcp::Connection connection{&shared, tp::DeviceId{1}};
    std::vector<Bytes> places; // by cookie
    size_t pending = 0;
};

tcp::Frame some_frame(fuzz::Input &in) {
    tcp::Frame frame;
    frame.kind = tcp::FrameKind(in.byte());
    frame.credit = in.take<uint16_t>();
    frame.tag = in.byte();
    frame.length = in.take<uint16_t>();
    frame.id = in.byte();
    frame.peer_id = in.byte();
    return frame;
}

void act(Rig &rig, fuzz::Input &in) {
    switch (Step(in.byte() % uint8_t(Step::count))) {
    case Step::frame: {
        const tcp::Frame frame = some_frame(in);
        Bytes bytes(tcp::Frame::wire_length);
        frame.encode(bytes.data());
        const Bytes payload = in.bytes(in.byte());
        bytes.insert(bytes.end(), payload.begin(), payload.end());
        return rig.say(bytes);
    }
    case Step::raw: return rig.say(in.bytes(in.byte()));
    case Step::receive: {
        const uint8_t tag = in.byte(), any = in.byte();
        if (rig.pending < most_pending) rig.receive(tag, any ? 0 : UINT64_MAX, in.take<uint16_t>());
        return;
    }
    case Step::send: {
        const uint8_t tag = in.byte();
        if (rig.pending < most_pending) rig.send(tag, in.take<uint16_t>());
        return;
    }
    case Step::take: return rig.take(in.byte(), UINT64_MAX);
    case Step::withdraw: {
        const uint8_t cookie = in.byte();
        rig.shared.receives.cancel(cookie);
        return rig.connection.withdraw(cookie);
    }
    default: return rig.hear();
    }
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    Rig rig((in.byte() & 1) != 0);
    for (int steps = 0; !in.empty() && steps < 200; steps++) {
        act(rig, in);
        const bool up = rig.connection.progress();
        rig.reap();
        if (!up) break;
    }
    rig.connection.abandon();
    for (uint64_t cookie = 0; cookie < rig.places.size(); cookie++)
        rig.shared.receives.cancel(cookie); // those that nothing has matched
    rig.reap();
    FUZZ_REQUIRE(rig.pending == 0); // each operation has completed once
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    const auto frame = [](Made &made, tcp::FrameKind kind, uint8_t tag, uint16_t length, uint8_t id,
                          uint8_t peer_id, const Bytes &payload = {}, uint16_t credit = 0) {
        made.byte(uint8_t(Step::frame)).byte(uint8_t(kind)).put(credit).byte(tag).put(length);
        made.byte(id).byte(peer_id).byte(uint8_t(payload.size())).all(payload);
    };
    const auto receive = [](Made &made, uint8_t tag, uint16_t length, uint8_t any = 0) {
        made.byte(uint8_t(Step::receive)).byte(tag).byte(any).put(length);
    };
    const Bytes eight(8, 7);
    std::vector<Bytes> out;
    for (const uint8_t flags : {0, 1}) {
        Made expected; // by a receive, and by none until later
        expected.byte(flags);
        receive(expected, 1, 8);
        frame(expected, tcp::FrameKind::eager, 1, 8, 0, 0, eight);
        frame(expected, tcp::FrameKind::eager, 2, 8, 0, 0, eight);
        receive(expected, 2, 4, 1);
        frame(expected, tcp::FrameKind::eager, 3, 8, 0, 0, Bytes(3, 1));
        receive(expected, 3, 8);
        expected.byte(uint8_t(Step::raw)).byte(5).all(Bytes(5, 2));
        out.push_back(expected);

        Made announced; // and data in two pieces
        announced.byte(flags);
        receive(announced, 1, 100);
        frame(announced, tcp::FrameKind::announce, 1, 200, 9, 0);
        frame(announced, tcp::FrameKind::data, 0, 60, 0, 0, Bytes(60, 1));
        frame(announced, tcp::FrameKind::data, 0, 40, 0, 0, Bytes(40, 1));
        frame(announced, tcp::FrameKind::announce, 2, 200, 10, 0);
        frame(announced, tcp::FrameKind::withdraw, 0, 0, 10, 0);
        frame(announced, tcp::FrameKind::announce, 2, 200, 11, 0);
        receive(announced, 2, 50);
        frame(announced, tcp::FrameKind::withdraw, 0, 0, 11, 0);
        out.push_back(announced);

        Made sending; // small ones, and one that is granted
        sending.byte(flags).byte(uint8_t(Step::send)).byte(1).put(uint16_t(8));
        sending.byte(uint8_t(Step::send)).byte(2).put(uint16_t(800));
        sending.byte(uint8_t(Step::read));
        frame(sending, tcp::FrameKind::grant, 0, 700, 0, 3, {}, 8);
        sending.byte(uint8_t(Step::send)).byte(2).put(uint16_t(900));
        sending.byte(uint8_t(Step::withdraw)).byte(2);
        frame(sending, tcp::FrameKind::credit, 0, 0, 0, 0);
        sending.byte(uint8_t(Step::take)).byte(1);
        frame(sending, tcp::FrameKind::corrupt, 0, 0, 0, 0);
        out.push_back(sending);
    }
    return out;
}
