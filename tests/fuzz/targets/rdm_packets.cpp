// The protocol of transports over libfabric and UCX: packets that a peer or a stranger sends.
// SPDX-License-Identifier: Apache-2.0
//
// A device is connected to itself by a wire on which packets are changed, repeated, dropped and
// forged; forged heads carry the numbers of a genuine one, so that they get behind the first check.
// Input: steps.
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
    forge,
    raw,
    send,
    receive,
    withdraw,
    fetched,
    count
};
constexpr size_t most_pending = 32;

struct Rig {
    Rig() {
        auto made = std::make_unique<FuzzWire>(device.protocol());
        wire = made.get();
        FUZZ_REQUIRE(device.open(std::move(made), "fuzz") == DTRAIN_OK);
        uint8_t address[Address::wire_length];
        FUZZ_REQUIRE(device.address(address) == DTRAIN_OK);
        FUZZ_REQUIRE(device.connect(address, sizeof address, 0, &endpoint) == DTRAIN_OK);
        places.emplace_back(); // of connect()
    }
    ~Rig() {
        if (endpoint) device.disconnect(endpoint);
    }
    void progress() {
        dtrain_tp_done_t done[16];
        const int32_t n = device.progress(done, 16);
        FUZZ_REQUIRE(n >= 0);
        for (int32_t i = 0; i < n; i++) {
            FUZZ_REQUIRE(done[i].cookie < places.size());
            if (done[i].kind != DTRAIN_TP_SEND && done[i].kind != DTRAIN_TP_RECV) continue;
            Bytes().swap(places[done[i].cookie]); // a sanitizer sees who uses it after that
            FUZZ_REQUIRE(pending-- > 0);
        }
    }
    void pass(FuzzWire::Packet packet) {
        packet.bytes.reserve(1); // a packet may be empty, but it is somewhere
        wire->arriving.push_back(std::move(packet));
    }
    FuzzWire::Packet next() {
        if (wire->packets.empty()) return {};
        FuzzWire::Packet packet = std::move(wire->packets.front());
        wire->packets.pop_front();
        return packet;
    }

    fuzz::HostServices services{"\1\2\3"};
    Device device{services.table(), "fuzz"};
    FuzzWire *wire = nullptr;
    Endpoint *endpoint = nullptr;
    std::vector<Bytes> places; // by cookie
    size_t pending = 0;
};

void act(Rig &rig, fuzz::Input &in) {
    switch (Step(in.byte() % uint8_t(Step::count))) {
    case Step::pass: {
        for (uint8_t n = in.byte() % 16; n > 0 && !rig.wire->packets.empty(); n--)
            rig.pass(rig.next());
        return;
    }
    case Step::change: {
        FuzzWire::Packet packet = rig.next();
        const uint16_t at = in.take<uint16_t>();
        const Bytes mask = in.bytes(in.byte() % 16);
        for (size_t i = 0; i < mask.size() && !packet.bytes.empty(); i++)
            packet.bytes[(at + i) % packet.bytes.size()] ^= mask[i];
        if (in.byte() % 4 == 0) packet.bytes.resize(packet.bytes.size() * (in.byte() % 16) / 16);
        return rig.pass(std::move(packet));
    }
    case Step::repeat: {
        FuzzWire::Packet packet = rig.next();
        rig.pass(packet);
        return rig.pass(std::move(packet));
    }
    case Step::drop: (void)rig.next(); return;
    case Step::forge: {
        Head head;
        if (rig.wire->genuine.size() >= Head::wire_length) head.decode(rig.wire->genuine.data());
        head.kind = Kind(in.byte() % 14);
        head.credit = in.take<uint16_t>();
        head.sequence += in.byte() % 4;
        head.id = in.byte();
        head.tag = in.byte();
        head.length = in.take<uint16_t>();
        FuzzWire::Packet packet{Bytes(Head::wire_length), nullptr, in.byte() % 4 == 0};
        head.encode(packet.bytes.data());
        const Bytes payload = in.bytes(in.byte());
        packet.bytes.insert(packet.bytes.end(), payload.begin(), payload.end());
        return rig.pass(std::move(packet));
    }
    case Step::raw: return rig.pass({in.bytes(in.byte()), nullptr, in.byte() % 4 == 0});
    case Step::send:
    case Step::receive: {
        const uint8_t tag = in.byte();
        Bytes &memory = rig.places.emplace_back(in.take<uint16_t>() % 20'000);
        const dtrain_tp_iov_t iov{memory.data(), memory.size(), nullptr};
        const uint64_t cookie = rig.places.size() - 1;
        if (rig.pending >= most_pending) return;
        const bool sends = tag % 2 == 0;
        const dtrain_status_t s = sends ? rig.device.send(rig.endpoint, tag / 2, &iov, 1, cookie)
                                        : rig.device.recv(tag / 2, ~uint64_t{0}, &iov, 1, cookie);
        if (s == DTRAIN_OK) rig.pending++;
        return;
    }
    case Step::withdraw: return rig.device.withdraw(in.byte());
    default: rig.wire->fetched = true; return;
    }
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    Rig rig;
    for (uint8_t n = in.byte() % 8; n > 0; n--) { // of the handshake, unchanged
        rig.progress();
        while (!rig.wire->packets.empty()) rig.pass(rig.next());
    }
    for (int steps = 0; !in.empty() && steps < 100; steps++) {
        act(rig, in);
        rig.progress();
        rig.services.clock.now += 1'000'000;
    }
    for (uint64_t cookie = 1; cookie < rig.places.size(); cookie++) rig.device.withdraw(cookie);
    for (int i = 0; i < 3; i++) rig.progress();
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    const auto message = [](Made &made, uint8_t tag, uint16_t length) {
        made.byte(uint8_t(Step::receive)).byte(uint8_t(2 * tag + 1)).put(length);
        made.byte(uint8_t(Step::send)).byte(uint8_t(2 * tag)).put(length);
    };
    const auto pass = [](Made &made, uint8_t n = 15) { made.byte(uint8_t(Step::pass)).byte(n); };
    std::vector<Bytes> out;
    Made messages; // small, of several packets, and bulk
    messages.byte(6);
    for (const uint16_t length : {10, 7000, 15'000}) {
        message(messages, 1, length);
        pass(messages);
        pass(messages);
        messages.byte(uint8_t(Step::fetched));
    }
    messages.byte(uint8_t(Step::withdraw)).byte(5);
    pass(messages);
    out.push_back(messages);
    for (const Step step : {Step::repeat, Step::drop}) {
        Made made;
        made.byte(6);
        message(made, 1, 10);
        made.byte(uint8_t(step));
        pass(made);
        out.push_back(made);
    }
    for (uint8_t kind = 1; kind <= uint8_t(Kind::part); kind += 3) {
        Made made;
        made.byte(6);
        message(made, 3, 5000);
        pass(made, 1);
        made.byte(uint8_t(Step::forge)).byte(kind).put(uint16_t(0)).byte(1).byte(0).byte(3);
        made.put(uint16_t(8)).byte(1).byte(8).all(Bytes(8, 1));
        pass(made);
        out.push_back(made);
    }
    Made hello; // changed
    hello.byte(0).byte(uint8_t(Step::change)).put(uint16_t(60)).byte(1).byte(1).byte(1);
    pass(hello);
    out.push_back(hello);
    return out;
}
