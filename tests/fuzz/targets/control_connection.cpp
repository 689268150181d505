// A control connection before and after its handshake: a stranger, a peer, or somebody between two
// members sends anything.
// SPDX-License-Identifier: Apache-2.0
//
// Two members speak through a relay. Input: the secrets, then steps: what the relay does with the
// bytes that have arrived there, and what a member says.
#include "tests/fuzz/fuzz.h"

#include "base/status.h"
#include "cluster/join/connection.h"
#include "wire/frame.h"

#include <deque>
#include <optional>
#include <sys/socket.h>

using namespace dtrain;
using namespace dtrain::cluster;
using fuzz::Bytes;

namespace {

enum class Step : uint8_t { pass, part, change, insert, drop, say, say_much, end, wind_up, count };

struct Side {
    Side(wire::Handshake::Side side, const wire::Credentials &own, int32_t self, int32_t peer) {
        int ends[2];
        FUZZ_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
        relay = Fd(ends[1]);
        connection.emplace(Fd(ends[0]), side, own, self, peer, INT64_MAX, uint16_t(7));
    }
    void settle(Status s) {
        if (s == DTRAIN_OK) return;
        FUZZ_REQUIRE(s < 0 && *error_text() != 0);
        over = true;
    }
    void go() {
        if (over) return;
        if (connection->wants_to_write()) settle(connection->ready_to_write());
        std::vector<wire::Message> messages;
        if (!over) settle(connection->ready_to_read(messages));
        for (const wire::Message &message : messages) heard.push_back(wire::encode(message));
        (void)connection->introduced();
    }
    void say(size_t bytes, uint8_t fill) {
        if (over || connection->state() != Connection::State::open) return;
        Bytes frame;
        const wire::Message message = wire::Relay{0, 1, 0, Bytes(bytes, fill)};
        wire::append_frame(message, frame);
        said.push_back(wire::encode(message));
        settle(connection->send(frame));
    }
    // What it has written, as far as the relay has read it.
    void collect() {
        uint8_t bytes[4096];
        for (ssize_t n; (n = recv(relay.get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
            written.insert(written.end(), bytes, bytes + n);
    }
    // How many of them it has room for.
    size_t hear(const Bytes &bytes) const {
        const ssize_t n =
            ::send(relay.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        return n < 0 ? 0 : size_t(n);
    }

    Fd relay;
    std::optional<Connection> connection;
    Bytes written;
    std::vector<Bytes> said, heard;
    bool over = false;
};

void act(Side sides[2], fuzz::Input &in, bool &changed) {
    const uint8_t what = in.byte();
    Side &from = sides[what & 1], &to = sides[1 - (what & 1)];
    from.collect();
    Bytes bytes = from.written;
    switch (Step((what >> 1) % uint8_t(Step::count))) {
    case Step::pass: break;
    case Step::part: bytes.resize(std::min<size_t>(bytes.size(), in.byte())); break;
    case Step::change: {
        const uint16_t at = in.take<uint16_t>();
        const Bytes mask = in.bytes(1 + in.byte() % 8);
        for (size_t i = 0; i < mask.size() && !bytes.empty(); i++)
            bytes[(at + i) % bytes.size()] ^= mask[i];
        changed = true;
        from.written.clear();
        to.hear(bytes);
        return;
    }
    case Step::insert:
        changed = true;
        to.hear(in.bytes(in.byte()));
        return;
    case Step::drop:
        changed = true;
        from.written.clear();
        return;
    case Step::say: return from.say(in.byte(), what);
    case Step::say_much: return from.say(uint64_t{in.byte()} << 8, what);
    case Step::end: (void)shutdown(from.relay.get(), SHUT_WR); return;
    default:
        if (what >= 128)
            from.connection->drain(INT64_MAX);
        else if (!from.over)
            (void)from.connection->wind_up();
        from.over = from.over || what < 128;
        return;
    }
    from.written.erase(from.written.begin(), from.written.begin() + long(to.hear(bytes)));
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const uint8_t flags = in.byte();
    const bool secret = (flags & 1) != 0, other = (flags & 2) != 0;
    const auto level = protection::Level(flags / 4 % 3);
    const wire::Credentials own{secret ? "secret" : "", level}, theirs{!secret ? ""
                                                                       : other ? "other"
                                                                               : "secret",
                                                                       level};
    using Is = wire::Handshake::Side;
    Side sides[2] = {{Is::dialler, own, 1, 0}, {Is::listener, theirs, 0, wire::Handshake::anybody}};
    sides[0].settle(sides[0].connection->ready_to_write());
    bool changed = false;
    if (flags & 128) // the handshake as it should be
        for (int i = 0; i < 6; i++) {
            Side &from = sides[i % 2], &to = sides[1 - i % 2];
            from.go();
            from.collect();
            to.hear(std::exchange(from.written, {}));
            to.go();
        }
    for (int steps = 0; !in.empty() && steps < 100; steps++) {
        act(sides, in, changed);
        for (Side &side : sides) side.go();
    }
    // Nobody gets behind the handshake with another secret; nothing arrives that was not sent.
    for (const int i : {0, 1}) {
        const Side &side = sides[i];
        if (secret && other)
            FUZZ_REQUIRE(side.connection->state() != Connection::State::open && side.heard.empty());
        if (!changed || (secret && level != protection::Level::none)) {
            const auto &said = sides[1 - i].said;
            FUZZ_REQUIRE(side.heard.size() <= said.size());
            FUZZ_REQUIRE(std::equal(side.heard.begin(), side.heard.end(), said.begin()));
        }
    }
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    const auto step = [](Made &made, uint8_t from, Step what) {
        made.byte(uint8_t(from | uint8_t(what) << 1));
    };
    for (const uint8_t flags : {0, 1, 5, 9, 3, 128, 129, 133, 137}) {
        Made made;
        made.byte(flags);
        for (int i = 0; i < 3; i++)
            for (const uint8_t from : {0, 1}) step(made, from, Step::pass);
        for (const uint8_t from : {0, 1}) {
            step(made, from, Step::say);
            made.byte(20);
            step(made, from, Step::say_much);
            made.byte(4);
            step(made, from, Step::part);
            made.byte(10);
            step(made, from, Step::pass);
        }
        out.push_back(made);
        if (flags < 128) continue;
        for (const Step bad : {Step::change, Step::insert, Step::drop, Step::end, Step::wind_up}) {
            Made worse = made;
            step(worse, 0, Step::say);
            worse.byte(3);
            step(worse, 0, bad);
            if (bad == Step::change) worse.put(uint16_t(1)).byte(0).byte(7);
            if (bad == Step::insert) worse.byte(5).all(Bytes{1, 0, 0, 0, 9});
            step(worse, 0, Step::pass);
            step(worse, 1, Step::pass);
            out.push_back(worse);
        }
    }
    Made draining;
    draining.byte(128);
    draining.byte(uint8_t(uint8_t(Step::wind_up) + 7 * uint8_t(Step::count)) << 1 | 1);
    step(draining, 0, Step::insert);
    draining.byte(1).byte(1);
    out.push_back(draining);
    return out;
}
