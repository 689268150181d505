// The protocol of transports over libfabric and UCX: packets that a peer or a stranger sends.
// SPDX-License-Identifier: Apache-2.0
//
// A device is connected to itself by a wire on which packets are changed, repeated, dropped and
// forged; forged heads carry the numbers of a genuine one, so that they get behind the first check.
// Input: what the wire can do, then steps.
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
    purge,
    busy,
    broken,
    leave,
    later,
    count
};
enum Can : uint8_t { breaks_off = 8, loud_close = 16, eight_bytes = 32 };
constexpr size_t most_pending = 32;

struct Rig {
    explicit Rig(uint8_t can) {
        auto made = std::make_unique<FuzzWire>(device.protocol());
        wire = made.get();
        FUZZ_REQUIRE(device.open(std::move(made), "fuzz") == DTRAIN_OK);
        uint8_t address[Address::wire_length];
        FUZZ_REQUIRE(device.address(address) == DTRAIN_OK);
        FUZZ_REQUIRE(device.connect(address, sizeof address, 0, &endpoint) == DTRAIN_OK);
        places.emplace_back(); // of connect()
        wire->settings().breaks_off_any_time = (can & breaks_off) != 0;
        wire->settings().closes_quietly = (can & loud_close) == 0;
        if (can & eight_bytes) device.limit_eager(8);
    }
    ~Rig() {
        leave();
        wire->closing = &services.clock;
    }
    void leave() {
        if (endpoint) device.disconnect(std::exchange(endpoint, nullptr));
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
        head.kind = Kind(in.byte() % 15);
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
        const bool sends = tag % 2 == 0;
        if (rig.pending >= most_pending || (sends && !rig.endpoint)) return;
        const dtrain_status_t s = sends ? rig.device.send(rig.endpoint, tag / 2, &iov, 1, cookie)
                                        : rig.device.recv(tag / 2, ~uint64_t{0}, &iov, 1, cookie);
        if (s == DTRAIN_OK) rig.pending++;
        return;
    }
    case Step::withdraw: return rig.device.withdraw(in.byte());
    case Step::purge: return rig.device.purge(in.byte(), UINT64_MAX);
    case Step::busy: rig.wire->busy = !rig.wire->busy; return;
    case Step::broken: rig.wire->broken = "the network says so"; return;
    case Step::leave: return rig.leave();
    case Step::later:
        rig.services.clock.now += int64_t{in.byte()} * 1'000'000'000;
        (void)rig.device.arm();
        return;
    default: rig.wire->fetched = true; return;
    }
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const uint8_t how = in.byte();
    Rig rig(how);
    for (uint8_t n = how % 8; n > 0; n--) { // of the beginning, unchanged
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
    // Behind what was really sent: the numbers go on by one.
    const auto forge = [](Made &made, uint8_t kind, uint8_t next, uint8_t id, uint16_t length,
                          uint8_t bytes, bool announces = false, uint16_t credit = 0) {
        made.byte(uint8_t(Step::forge)).byte(kind).put(credit).byte(next).byte(id).byte(3);
        made.put(length).byte(announces ? 0 : 1).byte(bytes).all(Bytes(bytes, 1));
    };
    const auto begin = [&](uint8_t can) {
        Made made;
        made.byte(uint8_t(6 | can));
        message(made, 1, 10);
        pass(made);
        return made;
    };
    const auto receive = [](Made &made, uint8_t tag, uint16_t length) {
        made.byte(uint8_t(Step::receive)).byte(uint8_t(2 * tag + 1)).put(length);
    };
    for (uint8_t kind = 1; kind <= uint8_t(Kind::confirmation) + 1; kind++)
        for (const uint8_t can : {0, loud_close | breaks_off}) {
            Made made = begin(can);
            forge(made, kind, 1, 5, 8, kind == uint8_t(Kind::eager) ? 8 : 0);
            made.byte(uint8_t(Step::later)).byte(1);
            out.push_back(made);
        }
    for (const bool wanted : {true, false}) { // parts, and too many of them
        Made parts = begin(0);
        if (wanted) receive(parts, 3, 12);
        forge(parts, uint8_t(Kind::eager), 1, 0, 16, 8);
        if (!wanted) receive(parts, 3, 4);
        forge(parts, uint8_t(Kind::part), 2, 0, 0, 4);
        parts.byte(uint8_t(Step::withdraw)).byte(3);
        forge(parts, uint8_t(Kind::part), 3, 0, 0, wanted ? 4 : 5);
        out.push_back(parts);
        Made kept = begin(0); // and then dropped
        forge(kept, uint8_t(Kind::eager), 1, 0, 16, 8);
        if (wanted) forge(kept, uint8_t(Kind::part), 2, 0, 0, 8);
        kept.byte(uint8_t(Step::purge)).byte(3);
        if (wanted) kept.byte(uint8_t(Step::broken));
        out.push_back(kept);
    }
    for (const uint8_t can : {uint8_t{0}, uint8_t{breaks_off}}) { // announced messages
        Made bulk = begin(can);
        forge(bulk, uint8_t(Kind::bulk), 1, 5, 100, 0, true);
        forge(bulk, uint8_t(Kind::withdraw), 2, 5, 0, 0);
        forge(bulk, uint8_t(Kind::bulk), 3, 6, 100, 0, true);
        receive(bulk, 3, 50);
        bulk.byte(uint8_t(Step::withdraw)).byte(3).byte(uint8_t(Step::fetched));
        out.push_back(bulk);
        Made fetched = begin(can);
        receive(fetched, 3, 50);
        forge(fetched, uint8_t(Kind::bulk), 1, 5, 100, 0, true);
        forge(fetched, uint8_t(Kind::withdraw), 2, 5, 1, 0);
        receive(fetched, 3, 0);
        forge(fetched, uint8_t(Kind::bulk), 3, 6, 100, 0, true);
        out.push_back(fetched);
        Made dropped = begin(can);
        forge(dropped, uint8_t(Kind::bulk), 1, 5, 100, 0, true);
        dropped.byte(uint8_t(Step::purge)).byte(3);
        forge(dropped, uint8_t(Kind::bulk), 2, 6, 100, 0, true);
        dropped.byte(uint8_t(Step::broken));
        out.push_back(dropped);
    }
    Made credit = begin(0);
    forge(credit, uint8_t(Kind::credit), 1, 0, 0, 0, false, 60'000);
    out.push_back(credit);
    for (const Step step : {Step::leave, Step::withdraw, Step::busy}) { // while much is on its way
        Made sending = begin(eight_bytes);
        for (const uint16_t length : {4, 7000, 15'000, 30}) message(sending, 2, length);
        sending.byte(uint8_t(step));
        if (step == Step::withdraw) sending.byte(6).byte(uint8_t(step)).byte(4);
        pass(sending, 2);
        if (step == Step::busy) sending.byte(uint8_t(step));
        sending.byte(uint8_t(Step::later)).byte(6);
        pass(sending);
        sending.byte(uint8_t(Step::fetched));
        pass(sending);
        out.push_back(sending);
    }
    Made hello; // changed
    hello.byte(0).byte(uint8_t(Step::change)).put(uint16_t(60)).byte(1).byte(1).byte(1);
    pass(hello);
    out.push_back(hello);
    return out;
}
