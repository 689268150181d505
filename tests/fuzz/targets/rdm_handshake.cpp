// The handshake of two devices over libfabric or UCX: the other device, a stranger, or the network
// between them says anything.
// SPDX-License-Identifier: Apache-2.0
//
// Two devices connect to each other by wires on which packets are changed, repeated and dropped;
// strangers introduce themselves, with the secret or without. Those with one of the secrets protect
// what they send, so nothing of it may be received that was changed. Input: the secrets, then
// steps.
#include "tests/fuzz/rdm_wire.h"

using namespace dtrain;
using namespace dtrain::rdm;
using fuzz::Bytes;
using fuzz::FuzzWire;

namespace {

enum class Step : uint8_t {
    pass,
    change,
    repeat,
    drop,
    stranger,
    flood,
    forge,
    connect,
    disconnect,
    send,
    breaks,
    busy,
    time,
    count
};

fuzz::HostServices &services(uint8_t which) {
    static fuzz::HostServices *all[] = {new fuzz::HostServices, new fuzz::HostServices("\1"),
                                        new fuzz::HostServices("\2", protection::Level::integrity)};
    return *all[which % 3];
}

const Bytes &message() {
    static const Bytes bytes = [] {
        Bytes made(25'600);
        for (size_t i = 0; i < made.size(); i++) made[i] = uint8_t(i * 7 + i / 256);
        return made;
    }();
    return bytes;
}

constexpr int most_floods = 400; // of an input for a side: each may cost an agreement on keys

struct Side {
    Side(uint8_t secret, const char *kind) : all(services(secret)), device(all.table(), kind) {
        auto made = std::make_unique<FuzzWire>(device.protocol());
        wire = made.get();
        FUZZ_REQUIRE(device.open(std::move(made), "fuzz") == DTRAIN_OK);
    }
    ~Side() { disconnect(); }
    void disconnect() {
        if (endpoint) device.disconnect(std::exchange(endpoint, nullptr));
    }
    void connect(Side &other, uint8_t mask) {
        if (endpoint) return;
        Address address;
        FUZZ_REQUIRE(other.device.address(reinterpret_cast<uint8_t *>(&address)) == DTRAIN_OK);
        if (mask == 1) address.kind[0] ^= 1; // its checksum is wrong then
        if (mask == 2) address.kind[0] ^= 1, address.seal(tp::Host(all.table()));
        if (mask == 3) address.mac[0] ^= 1;
        if (mask == 4) address.within_machine = 1, address.machine++;
        if (mask >= 4) address.seal(tp::Host(all.table()));
        (void)device.connect(&address, sizeof address, 1, &endpoint);
        std::string text;
        (void)device.route(&address, sizeof address, &text);
    }
    void progress(const Side &other) {
        dtrain_tp_done_t done[8];
        const int32_t n = device.progress(done, 8);
        FUZZ_REQUIRE(n >= 0);
        for (int32_t i = 0; i < n; i++) {
            if (done[i].kind == DTRAIN_TP_CONNECT && done[i].status == DTRAIN_OK) {
                FUZZ_REQUIRE(&all == &other.all); // who has another secret gets nowhere
                connected = true;
            }
            if (done[i].kind == DTRAIN_TP_PEER_LOST) connected = false;
            if (done[i].kind == DTRAIN_TP_RECV && done[i].status == DTRAIN_OK &&
                &all == &services(2))
                FUZZ_REQUIRE(!memcmp(got.data(), message().data(), done[i].bytes));
        }
    }
    void send(uint8_t hundreds) {
        const dtrain_tp_iov_t iov{const_cast<uint8_t *>(message().data()), hundreds * 100u,
                                  nullptr};
        if (endpoint) (void)device.send(endpoint, 1, &iov, 1, 2);
    }
    void receive() {
        const dtrain_tp_iov_t iov{got.data(), got.size(), nullptr};
        (void)device.recv(1, ~uint64_t{0}, &iov, 1, 3);
    }
    FuzzWire::Packet next() {
        if (wire->packets.empty()) return {};
        FuzzWire::Packet packet = std::move(wire->packets.front());
        wire->packets.pop_front();
        return packet;
    }

    fuzz::HostServices &all;
    Bytes got = Bytes(message().size());
    Device device;
    FuzzWire *wire = nullptr;
    Endpoint *endpoint = nullptr;
    bool connected = false;
    int floods = 0; // hellos of them
};

void arrive(Side &at, FuzzWire::Packet packet) {
    packet.bytes.reserve(1); // a packet may be empty, but it is somewhere
    at.wire->arriving.push_back(std::move(packet));
}

// A hello of a device that is not there. It knows the secret of `as`.
FuzzWire::Packet hello_of(const Side &as, const Side &to, uint8_t number, fuzz::Input &in) {
    const tp::Host host(as.all.table());
    Address own, address;
    FUZZ_REQUIRE(const_cast<Device &>(to.device).address(reinterpret_cast<uint8_t *>(&own)) ==
                 DTRAIN_OK);
    address = own; // of the same kind
    address.id.fill(number);
    Introduction introduction;
    introduction.hello = tp::Hello::make(host, address.id, own.id);
    introduction.number = number;
    introduction.token = number;
    const uint8_t what = in.byte(), at = in.byte(), mask = in.byte();
    if (what % 2 == 1) reinterpret_cast<uint8_t *>(&address)[at % sizeof address] ^= mask;
    address.seal(host);
    if (what % 4 >= 2) reinterpret_cast<uint8_t *>(&introduction)[at % sizeof introduction] ^= mask;
    Bytes bytes(Head::wire_length);
    Head{.kind = Kind::hello}.encode(bytes.data());
    bytes = fuzz::Made().all(bytes).put(introduction).put(address);
    if (what >= 240) bytes.resize(bytes.size() - at);
    return {bytes, nullptr, false};
}

void act(Side sides[2], fuzz::Input &in) {
    const uint8_t choice = in.byte();
    Side &from = sides[choice >> 7], &to = sides[1 - (choice >> 7)];
    switch (Step(choice % 128 % uint8_t(Step::count))) {
    case Step::pass:
        for (uint8_t n = in.byte() % 16; n > 0 && !from.wire->packets.empty(); n--)
            arrive(to, from.next());
        return;
    case Step::change: {
        FuzzWire::Packet packet = from.next();
        const uint16_t at = in.take<uint16_t>();
        const Bytes mask = in.bytes(1 + in.byte() % 8);
        for (size_t i = 0; i < mask.size() && !packet.bytes.empty(); i++)
            packet.bytes[(at + i) % packet.bytes.size()] ^= mask[i];
        if (in.byte() % 8 == 1) packet.bytes.resize(packet.bytes.size() * (in.byte() % 16) / 16);
        return arrive(to, std::move(packet));
    }
    case Step::repeat: {
        FuzzWire::Packet packet = from.next();
        arrive(to, packet);
        return arrive(to, std::move(packet));
    }
    case Step::drop: (void)from.next(); return;
    case Step::stranger: return arrive(to, hello_of(in.byte() % 2 ? from : to, to, in.byte(), in));
    case Step::flood: {
        fuzz::Input nothing(nullptr, 0);
        for (uint8_t n = in.byte() % 80; n > 0 && to.floods < most_floods; n--, to.floods++)
            arrive(to, hello_of(to, to, n, nothing));
        return;
    }
    case Step::forge: { // with the numbers of what was really sent last
        Head head;
        if (from.wire->genuine.size() < Head::wire_length) return;
        head.decode(from.wire->genuine.data());
        head.kind = Kind(in.byte() % 15);
        head.sequence += in.byte() % 4;
        head.tag = in.byte();
        Bytes bytes(Head::wire_length);
        head.encode(bytes.data());
        const Bytes body = in.bytes(in.byte());
        bytes.insert(bytes.end(), body.begin(), body.end());
        return arrive(to, {bytes, nullptr, in.byte() % 4 == 1});
    }
    case Step::connect: return from.connect(to, in.byte());
    case Step::disconnect: return from.disconnect();
    case Step::send: to.receive(); return from.send(in.byte());
    case Step::breaks: from.wire->broken = "the network says so"; return;
    case Step::busy: from.wire->busy = !from.wire->busy; return;
    default: {
        const int64_t by = int64_t{in.byte()} * 100'000'000;
        for (uint8_t which = 0; which < 3; which++) services(which).clock.now += by;
        (void)from.device.arm();
    }
    }
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const uint8_t secrets = in.byte();
    Side sides[2]{{secrets, "fuzz"}, {uint8_t(secrets / 3), secrets < 200 ? "fuzz" : "other"}};
    sides[0].wire->settings().closes_quietly = secrets % 2 == 0;
    for (uint8_t n = in.byte() % 8; n > 0; n--) { // of the handshake, unchanged
        sides[0].connect(sides[1], 0);
        for (const int i : {0, 1}) {
            sides[i].progress(sides[1 - i]);
            while (!sides[i].wire->packets.empty()) arrive(sides[1 - i], sides[i].next());
        }
    }
    for (int steps = 0; !in.empty() && steps < 100; steps++) {
        act(sides, in);
        for (const int i : {0, 1}) sides[i].progress(sides[1 - i]);
        for (uint8_t which = 0; which < 3; which++) services(which).clock.now += 1'000'000;
    }
    for (Side &side : sides) side.wire->closing = &side.all.clock;
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    constexpr uint8_t other = 128;
    const auto step = [](Made &made, uint8_t side, Step what) -> Made & {
        return made.byte(uint8_t(side | uint8_t(what)));
    };
    const auto both = [&](Made &made, int times) {
        while (times-- > 0)
            for (const uint8_t side : {uint8_t{0}, other}) step(made, side, Step::pass).byte(15);
    };
    std::vector<Bytes> out;
    for (const uint8_t secrets :
         {0, 4, 8, 7, 1, 3, 200}) { // alike, others, one sided, of other kinds
        Made made;
        made.byte(secrets).byte(0);
        step(made, 0, Step::connect).byte(0);
        both(made, 3);
        step(made, 0, Step::send).byte(1);
        both(made, 1);
        step(made, 0, Step::disconnect);
        step(made, other, Step::time).byte(200);
        step(made, other, Step::time).byte(200);
        out.push_back(made);
        Made crossing; // both at once
        crossing.byte(secrets).byte(0);
        step(crossing, 0, Step::connect).byte(0);
        step(crossing, other, Step::connect).byte(0);
        both(crossing, 4);
        out.push_back(crossing);
    }
    for (const uint8_t mask : {1, 2, 3, 4, 5}) {
        Made made;
        made.byte(4).byte(0);
        step(made, 0, Step::connect).byte(mask);
        both(made, 3);
        out.push_back(made);
    }
    for (const uint8_t passed : {0, 1, 2, 3}) // a change, and silence, at each stage
        for (const Step what : {Step::change, Step::repeat, Step::drop, Step::busy, Step::breaks}) {
            Made made;
            made.byte(4).byte(0);
            step(made, 0, Step::connect).byte(0);
            for (uint8_t i = 0; i < passed; i++)
                step(made, i % 2 ? other : uint8_t{0}, Step::pass).byte(15);
            step(made, passed % 2 ? other : uint8_t{0}, what);
            if (what == Step::change) made.put(uint16_t(60)).byte(0).byte(1).byte(0);
            both(made, 2);
            step(made, 0, Step::time).byte(100);
            if (what == Step::busy) step(made, passed % 2 ? other : uint8_t{0}, what);
            both(made, 2);
            out.push_back(made);
        }
    constexpr uint8_t in_records = 8;
    for (const uint8_t hundreds : {1, 50, 200}) // in a packet, in several, announced
        for (const uint8_t passed : {0, 1, 2, 4})
            for (const Step what :
                 {Step::pass, Step::change, Step::repeat, Step::drop, Step::forge}) {
                Made made;
                made.byte(in_records).byte(4);
                step(made, 0, Step::send).byte(hundreds);
                for (uint8_t i = 0; i < passed; i++)
                    step(made, i % 2 ? other : uint8_t{0}, Step::pass).byte(1);
                step(made, passed % 2 ? other : uint8_t{0}, what);
                if (what == Step::pass) made.byte(1);
                if (what == Step::change) made.put(uint16_t(70)).byte(0).byte(1).byte(0);
                if (what == Step::forge)
                    made.byte(uint8_t(Kind::record)).byte(0).byte(1).byte(60).all(Bytes(60, 1));
                both(made, 4);
                out.push_back(made);
            }
    Made strangers;
    strangers.byte(4).byte(7);
    for (const uint8_t what : {0, 1, 2, 250})
        step(strangers, 0, Step::stranger).byte(1).byte(9).byte(what).byte(30).byte(1);
    step(strangers, 0, Step::flood).byte(79);
    both(strangers, 2);
    step(strangers, 0, Step::time).byte(40);
    out.push_back(strangers);
    for (uint8_t kind = 1; kind <= uint8_t(Kind::verdict); kind++) {
        Made forged;
        forged.byte(4).byte(0);
        step(forged, 0, Step::connect).byte(0);
        step(forged, 0, Step::pass).byte(15);
        step(forged, other, Step::forge).byte(kind).byte(0).byte(kind).byte(1).byte(1).byte(0);
        both(forged, 3);
        out.push_back(forged);
    }
    return out;
}
