// The handshake of transport tcp: a stranger, or somebody on the way, says anything.
// SPDX-License-Identifier: Apache-2.0
//
// Input: which side it is about and the secrets, then a mask for each message of the other side,
// which is XORed onto what a genuine peer says, and how many of its bytes arrive at once.
#include "tests/fuzz/host_services.h"

#include "tcp/handshake.h"

#include <array>
#include <optional>
#include <sys/socket.h>

using namespace dtrain;
using namespace dtrain::tcp;
using fuzz::Bytes;

namespace {

enum Flags : uint8_t {
    one_sided = 1,
    different = 2,
    no_secret = 4,
    wrong_device = 8,
    refuses = 16,
    closes = 32
};

fuzz::HostServices &services(bool secret, bool other) {
    static fuzz::HostServices *all[] = {new fuzz::HostServices,
                                        new fuzz::HostServices("\1", protection::Level::encrypted),
                                        new fuzz::HostServices("\2", protection::Level::integrity)};
    return *all[secret ? 1 + other : 0];
}

// One side, and the relay's end of its socket.
struct Side {
    Side(fuzz::HostServices &services, Role role, const DeviceId &from, const DeviceId &to)
        : host(services.table()) {
        int ends[2];
        FUZZ_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
        relay = tp::Fd(ends[1]);
        handshake.emplace(Fd(ends[0]), role, Hello::make(host, from, to), 0);
    }
    void go() {
        if (over()) return;
        step = handshake->step(host);
    }
    bool over() const { return step == Handshake::Step::failed || step == Handshake::Step::done; }
    Bytes said() const {
        Bytes bytes(1024);
        const ssize_t got = recv(relay.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        bytes.resize(got > 0 ? size_t(got) : 0);
        return bytes;
    }
    void hear(const Bytes &bytes) const {
        if (!bytes.empty()) (void)!::send(relay.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }

    tp::Host host;
    Fd relay;
    std::optional<Handshake> handshake;
    Handshake::Step step = Handshake::Step::wait;
};

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const uint8_t flags = in.byte();
    const bool secret = (flags & no_secret) == 0;
    const bool others = secret ? (flags & one_sided) == 0 : (flags & one_sided) != 0;
    Side initiator(services(secret, false), Role::initiator, DeviceId{1}, DeviceId{2});
    Side responder(services(others, (flags & different) != 0), Role::responder,
                   DeviceId{uint8_t(flags & wrong_device ? 3 : 2)}, DeviceId{});
    bool changed = false;
    for (int round = 0; round < 8 && !(initiator.over() && responder.over()); round++) {
        Side &from = round % 2 ? responder : initiator, &to = round % 2 ? initiator : responder;
        from.go();
        if (from.step == Handshake::Step::authentic)
            from.step =
                from.handshake->answer(flags & refuses ? Verdict::duplicate : Verdict::accepted);
        Bytes said = from.said();
        const size_t first = in.byte();
        if (flags & closes && first == 0) { // the connection ends here
            to.relay.reset();
            to.go();
            changed = true;
            break;
        }
        for (uint8_t &byte : said) {
            const uint8_t mask = in.byte();
            byte ^= mask;
            changed |= mask != 0;
        }
        to.hear(Bytes(said.begin(), said.begin() + long(std::min(first, said.size()))));
        to.go();
        to.hear(Bytes(said.begin() + long(std::min(first, said.size())), said.end()));
        to.go();
        if (to.step == Handshake::Step::authentic)
            to.step =
                to.handshake->answer(flags & refuses ? Verdict::duplicate : Verdict::accepted);
    }
    initiator.go();
    const bool up =
        initiator.step == Handshake::Step::done && responder.step == Handshake::Step::done;
    const bool alike = secret == others && (!secret || (flags & different) == 0);
    if (secret && others) FUZZ_REQUIRE(!up || (alike && !changed));
    FUZZ_REQUIRE(!up || (flags & (refuses | wrong_device)) == 0 || changed);
    if (alike && !changed && (flags & (refuses | wrong_device)) == 0) FUZZ_REQUIRE(up);
    for (const Side *side : {&initiator, &responder})
        if (side->step == Handshake::Step::failed)
            FUZZ_REQUIRE(side->handshake->status() < 0 && *side->handshake->reason());
    for (const Side *side : {&initiator, &responder})
        FUZZ_REQUIRE(*side->handshake->timeout_reason() != 0);
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    for (const uint8_t flags : {0, 1, 2, 4, 5, 8, 12, 16, 20})
        out.push_back(Made().byte(flags).byte(7));
    for (const size_t round : {0, 1, 2, 3, 4}) { // where it ends
        Bytes ends(500);
        ends[0] = closes;
        for (size_t i = 0, at = 1; i < round; i++) {
            ends[at] = 200; // all at once
            at += 1 + std::array<size_t, 4>{100, 136, 32, 4}[i];
        }
        out.push_back(ends);
    }
    for (const size_t at : {1, 2, 6, 50}) { // magic number, version, other fields
        Bytes other(60, 0);
        other[1 + at] = 1;
        out.push_back(other);
    }
    Bytes version(7); // of the hello
    version[6] = 1;
    out.push_back(version);
    return out;
}
