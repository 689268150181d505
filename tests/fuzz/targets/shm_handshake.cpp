// The sockets of transport shm: messages and descriptors of a process of the same user, peer or
// not; windows, and the bells of their members.
// SPDX-License-Identifier: Apache-2.0
//
// A device that the input connects to, and that connects to the input. With `signs` a message has
// the proof that a genuine peer would send. Input: whether there is a secret, then steps.
#include "tests/fuzz/host_services.h"

#include "shm/device.h"

#include <fcntl.h>
#include <memory>
#include <sys/mman.h>

using namespace dtrain;
using namespace dtrain::shm;
using fuzz::Bytes;

namespace {

enum class Step : uint8_t {
    connect,
    hello,
    proof,
    ask,
    raw_in,
    challenge,
    ready,
    give,
    raw_out,
    bell,
    window,
    attach,
    send,
    receive,
    arm,
    hang_up,
    late,
    count
};
// What may be passed with a message.
enum class Passed : uint8_t { nothing, memory, unsealed, shorter, no_memory, window, count };
constexpr WindowShape shape{4096, 3};
constexpr size_t most_pending = 16;

fuzz::HostServices &services(bool secret) {
    static fuzz::HostServices *all[] = {new fuzz::HostServices, new fuzz::HostServices("\1\2")};
    return *all[secret];
}

Fd make_passed(Passed kind) {
    if (kind == Passed::nothing) return {};
    if (kind == Passed::no_memory) return Fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
    uint64_t size = round_up(kind == Passed::window ? shape.size() : sizeof(ChannelMemory), 4096);
    if (kind == Passed::shorter) size = 4096;
    Fd fd(memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    FUZZ_REQUIRE(fd && ftruncate(fd.get(), off_t(size)) == 0);
    if (kind != Passed::unsealed)
        FUZZ_REQUIRE(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
    return fd;
}

template <class Message> void change(Message &message, fuzz::Input &in) {
    const uint8_t at = in.byte(), mask = in.byte();
    if (mask != 0) reinterpret_cast<uint8_t *>(&message)[at % sizeof message] ^= mask;
}

struct Rig {
    explicit Rig(bool secret) : all(services(secret)), host(all.table()), device(all.table()) {
        FUZZ_REQUIRE(device.open() == DTRAIN_OK);
        peer = device.own();
        host.random(peer.name.data(), peer.name.size());
        Fd listener;
        FUZZ_REQUIRE(listen_as(host, peer.name, listener) == DTRAIN_OK);
        places.emplace_back(); // of connect()
        FUZZ_REQUIRE(device.connect(&peer, sizeof peer, 0, &endpoint) == DTRAIN_OK);
        FUZZ_REQUIRE(accept_from(listener, outbound) && outbound);
        outward.acceptor = inward.connector = peer;
        inward.acceptor = outward.connector = device.own();
    }
    ~Rig() {
        while (!windows.empty()) free_window();
        device.disconnect(endpoint);
        inbound.reset();
        settle();
        for (uint64_t cookie = 1; cookie < places.size(); cookie++) device.withdraw(cookie);
        device.purge(0, 0);
        settle();
        FUZZ_REQUIRE(pending == 0 && connects == 1); // everything has completed once
    }
    void settle() {
        for (int i = 0; i < 20; i++) {
            all.clock.now += 1'000'000;
            progress();
        }
    }
    void free_window() {
        device.free_window(windows.back());
        windows.pop_back();
    }
    void progress() {
        dtrain_tp_done_t done[8];
        const int32_t n = device.progress(done, 8);
        for (int32_t i = 0; i < n; i++) {
            FUZZ_REQUIRE(done[i].cookie < places.size());
            if (done[i].kind == DTRAIN_TP_CONNECT) {
                up = done[i].status == DTRAIN_OK;
                FUZZ_REQUIRE(++connects == 1 && (!up || genuine_challenge));
            } else if (done[i].kind == DTRAIN_TP_PEER_LOST) {
                FUZZ_REQUIRE(std::exchange(up, false));
            } else {
                Bytes().swap(places[done[i].cookie]); // a sanitizer sees who uses it after that
                FUZZ_REQUIRE(pending-- > 0);
            }
        }
    }
    static void say(const Fd &to, const void *message, size_t size, Passed passed) {
        const Fd fd = make_passed(passed);
        if (to && size > 0) (void)send_message(to, message, size, fd ? fd.get() : -1);
    }
    // Reads what the device has said; the parts of it that a genuine peer needs are kept.
    void hear() {
        std::byte message[socket_message_limit];
        Fd passed;
        Hello hello;
        Challenge challenge;
        for (ssize_t n;
             inbound && (n = receive_message(inbound, message, sizeof message, passed)) > 0;)
            if (parse(message, size_t(n), challenge)) inward.acceptor_nonce = challenge.nonce;
        for (ssize_t n;
             outbound && (n = receive_message(outbound, message, sizeof message, passed)) > 0;)
            if (parse(message, size_t(n), hello)) outward.connector_nonce = hello.nonce;
    }

    fuzz::HostServices &all;
    const Host host;
    Device device;
    Address peer;
    Endpoint *endpoint = nullptr;
    Fd inbound, outbound; // the peer's ends
    Transcript inward, outward;
    std::vector<Window *> windows;
    std::vector<Bytes> places; // by cookie
    size_t pending = 0;
    int connects = 0;
    bool up = false, genuine_challenge = false;
};

void act(Rig &rig, fuzz::Input &in) {
    const uint8_t choice = in.byte();
    const bool signs = choice < 128;
    const Step step = Step(choice % 128 % uint8_t(Step::count));
    rig.hear();
    switch (step) {
    case Step::connect: (void)connect_to(rig.host, rig.device.own().name, rig.inbound); return;
    case Step::hello: {
        Hello hello;
        rig.host.random(hello.nonce.data(), hello.nonce.size());
        hello.from = rig.peer;
        change(hello, in);
        rig.inward.connector_nonce = hello.nonce;
        rig.inward.connector = hello.from;
        return Rig::say(rig.inbound, &hello, sizeof hello, Passed(in.byte() % 2));
    }
    case Step::proof: {
        Proof proof;
        if (signs) (void)prove(rig.host, Role::connector, rig.inward, proof.mac);
        change(proof, in);
        return Rig::say(rig.inbound, &proof, sizeof proof,
                        Passed(in.byte() % uint8_t(Passed::count)));
    }
    case Step::ask: {
        WindowAsk ask;
        if (signs && !rig.windows.empty()) ask.id = rig.windows.back()->id();
        ask.bytes = shape.bytes, ask.members = shape.members;
        change(ask, in);
        return Rig::say(rig.inbound, &ask, sizeof ask, Passed::nothing);
    }
    case Step::challenge: {
        Challenge challenge;
        rig.host.random(challenge.nonce.data(), challenge.nonce.size());
        rig.outward.acceptor_nonce = challenge.nonce;
        if (signs) (void)prove(rig.host, Role::acceptor, rig.outward, challenge.mac);
        change(challenge, in);
        // This process would be in reach, and copies would overwrite its memory.
        challenge.nonce_address = in.byte();
        rig.genuine_challenge |= signs || &rig.all == &services(false);
        return Rig::say(rig.outbound, &challenge, sizeof challenge, Passed(in.byte() % 2));
    }
    case Step::ready: {
        Ready ready;
        ready.in_reach = in.byte();
        change(ready, in);
        return Rig::say(rig.outbound, &ready, sizeof ready, Passed::nothing);
    }
    case Step::give: {
        WindowGive give;
        give.id.fill(in.byte() % 2);
        give.status = signs ? DTRAIN_OK : in.take<int32_t>();
        change(give, in);
        return Rig::say(rig.outbound, &give, sizeof give,
                        Passed(in.byte() % uint8_t(Passed::count)));
    }
    case Step::raw_in:
    case Step::raw_out: {
        const Bytes message = in.bytes(in.byte() % 128);
        return Rig::say(step == Step::raw_in ? rig.inbound : rig.outbound, message.data(),
                        message.size(), Passed(in.byte() % uint8_t(Passed::count)));
    }
    case Step::bell: {
        Doorbell bell;
        return bell.ring(rig.device.own().name);
    }
    case Step::window: {
        uint8_t handle[16];
        Window *window = nullptr;
        if (rig.windows.size() == 2) rig.free_window();
        if (rig.device.create_window(shape, in.byte() % 4, handle, &window) != DTRAIN_OK) return;
        rig.windows.push_back(window);
        // The other members say which of them sleep, and how their bells are called.
        auto *shared = static_cast<uint8_t *>(window->address()) + shape.offset();
        const Bytes bytes = in.bytes(in.byte());
        std::copy_n(bytes.begin(), std::min<size_t>(bytes.size(), shape.size() - shape.offset()),
                    shared);
        return window->ring();
    }
    case Step::attach: {
        Name id;
        id.fill(in.byte() % 2);
        Window *window = nullptr;
        const Status s = rig.device.attach_window(rig.endpoint, id.data(), shape, 1, &window);
        FUZZ_REQUIRE(s <= 0 && (s == DTRAIN_OK) == (window != nullptr));
        if (window != nullptr) rig.windows.push_back(window);
        return;
    }
    case Step::send:
    case Step::receive: {
        if (rig.pending >= most_pending) return;
        Bytes &memory = rig.places.emplace_back(in.take<uint16_t>() % 8192);
        const dtrain_tp_iov_t iov{memory.data(), memory.size(), nullptr};
        const uint64_t cookie = rig.places.size() - 1;
        const Status s = step == Step::send ? rig.endpoint->send(1, &iov, 1, cookie)
                                            : rig.device.recv(1, 1, &iov, 1, cookie);
        rig.pending += s == DTRAIN_OK;
        return;
    }
    case Step::arm: (void)rig.device.arm(); return;
    case Step::hang_up: (signs ? rig.inbound : rig.outbound).reset(); return;
    default: rig.all.clock.now += int64_t{in.byte()} * 100'000'000;
    }
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    Rig rig(in.byte() % 2 == 1);
    for (int steps = 0; !in.empty() && steps < 60; steps++) {
        act(rig, in);
        for (int i = 0; i < 17; i++) { // it looks at its sockets now and then
            rig.all.clock.now += 100'000;
            rig.progress();
        }
    }
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    const auto unchanged = [](Made &made, Step step) -> Made & {
        return made.byte(uint8_t(step)).byte(0).byte(0);
    };
    const auto joins = [&](Made &made) {
        made.byte(uint8_t(Step::connect));
        unchanged(made, Step::hello).byte(0);
        unchanged(made, Step::proof).byte(uint8_t(Passed::memory));
    };
    const auto answers = [&](Made &made, uint8_t in_reach) {
        unchanged(made, Step::challenge).byte(0).byte(0);
        made.byte(uint8_t(Step::ready)).byte(in_reach).byte(0).byte(0);
    };
    std::vector<Bytes> out;
    for (const uint8_t secret : {0, 1}) {
        Made made;
        made.byte(secret);
        joins(made);
        answers(made, secret);
        made.byte(uint8_t(Step::window)).byte(0).byte(10).all(Bytes(10, 0xff));
        unchanged(made, Step::ask);
        made.byte(uint8_t(Step::ask)).byte(8).byte(1);
        made.byte(uint8_t(Step::ask)).byte(24).byte(1);
        for (const Passed passed : {Passed::window, Passed::nothing, Passed::shorter}) {
            made.byte(uint8_t(Step::attach)).byte(1);
            made.byte(uint8_t(Step::give)).byte(1).byte(0).byte(0).byte(uint8_t(passed));
            made.byte(uint8_t(Step::attach)).byte(1);
        }
        made.byte(uint8_t(Step::send)).put(uint16_t(100)).byte(uint8_t(Step::arm));
        made.byte(uint8_t(Step::receive)).put(uint16_t(100)).byte(uint8_t(Step::bell));
        made.byte(uint8_t(Step::hang_up));
        out.push_back(made);
        for (const Passed passed :
             {Passed::nothing, Passed::unsealed, Passed::shorter, Passed::no_memory}) {
            Made wrong;
            wrong.byte(secret).byte(uint8_t(Step::connect));
            unchanged(wrong, Step::hello).byte(1);
            unchanged(wrong, Step::proof).byte(uint8_t(passed));
            out.push_back(wrong);
        }
        Made unproven;
        unproven.byte(secret).byte(uint8_t(Step::connect));
        unchanged(unproven, Step::hello).byte(0);
        unproven.byte(uint8_t(Step::proof) + 128).byte(0).byte(0).byte(1);
        unproven.byte(uint8_t(Step::challenge) + 128).byte(0).byte(0).byte(0).byte(0);
        out.push_back(unproven);
    }
    Made given; // with a status
    given.byte(0);
    answers(given, 0);
    for (const Status status :
         {Status{DTRAIN_ERR_NOT_FOUND}, Status{DTRAIN_ERR_MISMATCH}, Status{DTRAIN_ERR_PEER}, 5}) {
        given.byte(uint8_t(Step::attach)).byte(0);
        given.byte(uint8_t(Step::give) + 128).byte(0).put(status).byte(0).byte(0).byte(0);
        given.byte(uint8_t(Step::attach)).byte(0);
    }
    given.byte(uint8_t(Step::raw_out)).byte(5).all(Bytes(5)).byte(0);
    out.push_back(given);
    Made version; // of the hello, and nobody says anything for long
    version.byte(0).byte(uint8_t(Step::connect)).byte(uint8_t(Step::late)).byte(200);
    version.byte(uint8_t(Step::connect)).byte(uint8_t(Step::hello)).byte(4).byte(1).byte(0);
    version.byte(uint8_t(Step::connect))
        .byte(uint8_t(Step::raw_in))
        .byte(110)
        .all(Bytes(110))
        .byte(0);
    version.byte(uint8_t(Step::hang_up)).byte(uint8_t(Step::hang_up) + 128);
    out.push_back(version);
    return out;
}
