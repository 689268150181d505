// The memory that two processes of a host share: rings, counters and grants that the other process
// writes as it likes, at any time.
// SPDX-License-Identifier: Apache-2.0
//
// One channel is read by a Receiver, another is written by a Sender; the input has the other end of
// both. Input: whether each of them copies messages directly, then steps.
#include "tests/fuzz/host_services.h"

#include "shm/receiver.h"
#include "shm/sender.h"

#include <sys/socket.h>

using namespace dtrain;
using namespace dtrain::shm;
using fuzz::Bytes;

namespace {

enum class Act : uint8_t {
    frame,
    offer,
    raw_frame,
    grant,
    poke,
    receive,
    send,
    withdraw,
    take,
    wait,
    count
};
constexpr size_t most_pending = 32;

fuzz::HostServices &services() {
    static auto *all = new fuzz::HostServices;
    return *all;
}

Segment make_segment() {
    Segment segment;
    Fd fd;
    const tp::Host host(services().table());
    FUZZ_REQUIRE(Segment::create(host, sizeof(ChannelMemory), "", segment, fd) == DTRAIN_OK);
    return segment;
}

struct Rig {
    Rig(bool direct, bool sends_directly) : writes(sends_directly) {
        Segment in = make_segment(), out = make_segment();
        inbound = reinterpret_cast<ChannelMemory *>(in.data());
        outbound = reinterpret_cast<ChannelMemory *>(out.data());
        frames = RingWriter(&inbound->data, inbound->data_bytes, data_capacity);
        grants = RingWriter(&outbound->grants, outbound->grants_bytes, grants_capacity);
        PeerProcess process; // this one
        if (direct || writes) {
            int ends[2];
            FUZZ_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
            const Fd one(ends[0]), other(ends[1]);
            const Nonce nonce{7};
            (void)process.find(one, address_of(nonce), nonce);
        }
        receiver.open(std::move(in), Name{1}, direct ? process : PeerProcess());
        sender.open(std::move(out), Name{2}, writes ? process : PeerProcess(),
                    dtrain::tp::Distance::near);
    }
    ~Rig() {
        receiver.fail();
        sender.fail(DTRAIN_ERR_PEER);
        while (tp::Message *message = matcher.take(0, 0)) receiver.discard(message);
        for (uint64_t cookie = 0; cookie < places.size(); cookie++) cancel(cookie);
        reap();
        FUZZ_REQUIRE(pending == 0); // each operation has completed once
    }
    void cancel(uint64_t cookie) {
        tp::Receive *receive = matcher.cancel(cookie);
        if (receive == nullptr) return;
        done.push(receive->failed(DTRAIN_ERR_CANCELED));
        matcher.release(receive);
    }
    void receive(uint64_t tag, uint64_t length) {
        Bytes &memory = places.emplace_back(length);
        const dtrain_tp_iov_t iov{memory.data(), length, nullptr};
        FUZZ_REQUIRE(done.reserve());
        tp::Receive *one = matcher.create(tag, ~uint64_t{0}, &iov, 1, length, places.size() - 1);
        FUZZ_REQUIRE(one != nullptr);
        pending++;
        if (tp::Message *message = matcher.post(one)) receiver.deliver(message, one);
    }
    void send(uint64_t tag, uint64_t length) {
        Bytes &memory = places.emplace_back(length);
        const dtrain_tp_iov_t iov{memory.data(), length, nullptr};
        if (sender.post(tag, &iov, 1, length, places.size() - 1) == DTRAIN_OK) pending++;
    }
    // What is complete is freed, so that a sanitizer sees who uses it after that.
    void reap() {
        dtrain_tp_done_t one;
        while (done.pop(&one, 1) == 1) {
            FUZZ_REQUIRE(one.cookie < places.size() && pending > 0);
            Bytes().swap(places[one.cookie]);
            pending--;
        }
    }
    // Writes to the ring as a peer does that looks at no counter but its own.
    static void write(RingWriter &ring, const void *data, size_t bytes) {
        if (!ring.has_room(round_up(bytes, ring_unit))) return;
        ring.write(data, bytes);
        ring.pad();
        ring.publish();
    }

    tp::Host host{services().table()};
    Doorbell bell; // closed: whoever rings it gets nothing
    tp::Matcher matcher{UINT64_MAX};
    tp::Completions done;
    tp::Pool<SendOp> ops;
    uint64_t most_eager = 1024;
    Receiver receiver{host, matcher, done, bell};
    Sender sender{ops, done, bell, most_eager};
    ChannelMemory *inbound = nullptr, *outbound = nullptr;
    RingWriter frames, grants;          // the peer's ends
    std::vector<Bytes> places;          // by cookie
    Bytes remote = Bytes(128 << 10, 9); // what offers point to
    size_t pending = 0;
    bool receives = true, sends = true; // the peer has not broken the protocol
    // The sender writes to this process, so grants have genuine addresses, or such as are none.
    const bool writes;
};

uint64_t some_length(fuzz::Input &in) {
    const uint16_t length = in.take<uint16_t>();
    return length < 0xf000 ? length % 2048 : uint64_t{length} * 2; // most are small
}

void act(Rig &rig, fuzz::Input &in) {
    switch (Act(in.byte() % uint8_t(Act::count))) {
    case Act::frame: {
        Frame frame;
        frame.kind = FrameKind(in.byte() % 8);
        frame.slot = in.byte();
        frame.tag = in.byte();
        Bytes payload = in.bytes(in.byte());
        frame.bytes = uint32_t(payload.size());
        Bytes all = fuzz::Made().put(frame).all(payload);
        return Rig::write(rig.frames, all.data(), all.size());
    }
    case Act::offer: {
        Frame frame;
        frame.kind = FrameKind::offer;
        frame.slot = in.byte();
        frame.tag = in.byte();
        frame.bytes = sizeof(Offer);
        Offer offer;
        offer.length = some_length(in);
        const uint8_t where = in.byte();
        if (where >= 128) offer.address = reinterpret_cast<uintptr_t>(rig.remote.data());
        if (where == 255) offer.address = in.take<uint64_t>();
        const Bytes all = fuzz::Made().put(frame).put(offer);
        return Rig::write(rig.frames, all.data(), all.size());
    }
    case Act::raw_frame: {
        const Bytes all = in.bytes(in.byte());
        return Rig::write(rig.frames, all.data(), all.size());
    }
    case Act::grant: {
        Grant grant;
        grant.slot = in.byte();
        grant.bytes = in.take<uint16_t>();
        const uint8_t where = in.byte();
        if (where == 255) grant.address = 1, grant.bytes = in.take<uint64_t>();
        if (where == 254) {
            grant.address = reinterpret_cast<uintptr_t>(rig.remote.data());
            grant.bytes *= 2;
        }
        return Rig::write(rig.grants, &grant, sizeof grant);
    }
    case Act::poke: { // anything, anywhere
        auto *memory = reinterpret_cast<uint8_t *>(in.byte() % 2 ? rig.inbound : rig.outbound);
        size_t at = in.take<uint16_t>() % (sizeof(ChannelMemory) - 8);
        // Addresses of grants are not for the input.
        if (rig.writes) at %= offsetof(ChannelMemory, grants_bytes) - 8;
        const auto value = in.take<uint64_t>();
        std::memcpy(memory + (at < 2048 ? at / 8 * 8 : at), &value, sizeof value);
        return;
    }
    case Act::receive: {
        const uint8_t tag = in.byte();
        if (rig.pending < most_pending && rig.receives) rig.receive(tag, some_length(in));
        return;
    }
    case Act::send: {
        const uint8_t tag = in.byte();
        if (rig.pending < most_pending && rig.sends) rig.send(tag, some_length(in));
        return;
    }
    case Act::withdraw: {
        const uint8_t cookie = in.byte();
        rig.cancel(cookie);
        if (rig.receives) rig.receiver.withdraw(cookie);
        if (rig.sends) rig.sender.withdraw(cookie);
        return;
    }
    case Act::take:
        if (tp::Message *message = rig.matcher.take(in.byte(), ~uint64_t{0}))
            rig.receiver.discard(message);
        return;
    default: services().clock.now += int64_t{in.byte()} * 1'000'000; return;
    }
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const uint8_t direct = in.byte();
    Rig rig((direct & 1) != 0, (direct & 2) != 0);
    for (int steps = 0; !in.empty() && steps < 150; steps++) {
        act(rig, in);
        if (rig.receives && !rig.receiver.receive()) {
            rig.receives = false;
            rig.receiver.fail();
        }
        if (rig.sends && !rig.sender.advance()) {
            rig.sends = false;
            rig.sender.fail(DTRAIN_ERR_PEER);
        }
        if (rig.receives) (void)rig.receiver.has_news();
        if (rig.sends) (void)rig.sender.can_advance();
        rig.reap();
    }
    if (rig.receives) (void)rig.receiver.receive_last();
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    const auto frame = [](Made &made, FrameKind kind, uint8_t slot, uint8_t tag,
                          const Bytes &payload = {}) {
        made.byte(uint8_t(Act::frame)).byte(uint8_t(kind)).byte(slot).byte(tag);
        made.byte(uint8_t(payload.size())).all(payload);
    };
    const auto receive = [](Made &made, uint8_t tag, uint16_t length) {
        made.byte(uint8_t(Act::receive)).byte(tag).put(length);
    };
    const auto offer = [](Made &made, uint8_t slot, uint8_t tag, uint16_t length,
                          uint8_t where = 0) {
        made.byte(uint8_t(Act::offer)).byte(slot).byte(tag).put(length).byte(where);
    };
    std::vector<Bytes> out;
    Made eager; // expected, kept and then received, dropped
    eager.byte(0);
    receive(eager, 1, 10);
    for (const uint8_t tag : {1, 2, 3}) frame(eager, FrameKind::eager, 0, tag, Bytes(20, 5));
    receive(eager, 2, 30);
    eager.byte(uint8_t(Act::take)).byte(3);
    out.push_back(eager);
    for (const bool before : {true, false}) { // pieces
        Made offered;
        offered.byte(0);
        if (before) receive(offered, 1, 100);
        offer(offered, 4, 1, 100);
        if (!before) receive(offered, 1, 100);
        frame(offered, FrameKind::piece, 4, 0, Bytes(60, 1));
        frame(offered, FrameKind::piece, 4, 0, Bytes(40, 1));
        offer(offered, 5, 2, 100);
        frame(offered, FrameKind::withdrawn, 5, 0);
        offer(offered, 6, 3, 100);
        offered.byte(uint8_t(Act::take)).byte(3);
        receive(offered, 4, 50);
        offer(offered, 7, 4, 100);
        offered.byte(uint8_t(Act::withdraw)).byte(1);
        frame(offered, FrameKind::piece, 7, 0, Bytes(50, 1));
        out.push_back(offered);
    }
    Made direct; // copied from this process
    direct.byte(1);
    receive(direct, 1, 0xf000);
    offer(direct, 1, 1, 0xf000, 128);
    frame(direct, FrameKind::copied, 1, 0);
    receive(direct, 2, 0xf800);
    offer(direct, 2, 2, 0xf800, 255);
    direct.put(uint64_t{8});
    frame(direct, FrameKind::not_copied, 2, 0);
    receive(direct, 3, 0xf800);
    offer(direct, 3, 3, 0xf800, 128);
    direct.byte(uint8_t(Act::withdraw)).byte(2).byte(uint8_t(Act::wait)).byte(100);
    frame(direct, FrameKind::withdrawn, 3, 0);
    out.push_back(direct);
    Made sending;
    sending.byte(0);
    for (const uint16_t length : {100, 2000, 1500, 1800})
        sending.byte(uint8_t(Act::send)).byte(1).put(length);
    for (const uint8_t slot : {0, 1, 0, 1})
        sending.byte(uint8_t(Act::grant)).byte(slot).put(uint16_t(slot ? 0 : 1000)).byte(0);
    sending.byte(uint8_t(Act::withdraw)).byte(2).byte(uint8_t(Act::withdraw)).byte(3);
    sending.byte(uint8_t(Act::grant)).byte(2).put(uint16_t(0)).byte(0);
    out.push_back(sending);
    const auto grant = [](Made &made, uint8_t slot, uint16_t bytes, uint8_t where) {
        made.byte(uint8_t(Act::grant)).byte(slot).put(bytes).byte(where);
    };
    const auto send = [](Made &made, uint16_t length) {
        made.byte(uint8_t(Act::send)).byte(1).put(length);
    };
    Made writing; // to this process, and to nowhere; withdrawn before and after a grant
    writing.byte(2);
    send(writing, 0xf000);
    grant(writing, 0, 0xf000, 254);
    grant(writing, 0, 0, 0);
    send(writing, 0xf000);
    writing.byte(uint8_t(Act::grant)).byte(0).put(uint16_t(0)).byte(255).put(uint64_t{0x10000});
    grant(writing, 0, 200, 0);
    send(writing, 0xf800);
    grant(writing, 1, 0xf800, 254);
    writing.byte(uint8_t(Act::withdraw)).byte(2);
    grant(writing, 1, 0, 0);
    send(writing, 0xf000);
    writing.byte(uint8_t(Act::withdraw)).byte(3);
    grant(writing, 1, 100, 0);
    grant(writing, 1, 0, 0);
    out.push_back(writing);
    Made counters;
    counters.byte(0).byte(uint8_t(Act::poke)).byte(1).put(uint16_t(0)).put(uint64_t{1} << 40);
    out.push_back(counters);
    for (const uint8_t which : {0, 1}) // every counter and sleeper, one after the other
        for (uint16_t at = 0; at < 1024; at += 64) {
            Made poked;
            poked.byte(0);
            send(poked, 1500);
            offer(poked, 1, 1, 100);
            poked.byte(uint8_t(Act::poke)).byte(which).put(at).put(uint64_t{1} << 20);
            receive(poked, 1, 100);
            send(poked, 100);
            out.push_back(poked);
        }
    Made released;
    released.byte(0).byte(uint8_t(Act::send)).byte(1).put(uint16_t(100));
    released.byte(uint8_t(Act::poke)).byte(0).put(uint16_t(136)).put(uint64_t{1} << 40);
    released.byte(uint8_t(Act::send)).byte(1).put(uint16_t(100));
    out.push_back(released);
    return out;
}
