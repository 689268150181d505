// The protocol of transports over libfabric and UCX: packets that a peer or a stranger sends.
// SPDX-License-Identifier: Apache-2.0
//
// A device is connected to itself by a wire on which packets are changed, repeated, dropped and
// forged; forged heads carry the numbers of a genuine one, so that they get behind the first check.
// Input: steps.
#include "tests/fuzz/host_services.h"

#include "rdm/device.h"
#include "rdm/frame.h"

#include <deque>

using namespace dtrain;
using namespace dtrain::rdm;
using fuzz::Bytes;

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
constexpr size_t most_packets = 64, most_pending = 32;

class FuzzWire final : public Wire {
  public:
    explicit FuzzWire(Protocol *protocol) : protocol_(*protocol) {
        attr_.packet_limit = least_packet;
        attr_.copy_limit = 256;
        attr_.eager_limit = 8 << 10;
        attr_.bulk_limit = 1 << 20;
    }
    struct Packet {
        Bytes bytes;
        Operation *payload = nullptr;
        bool announces = false;
    };
    struct Fetch {
        Operation *place;
        bool breaks_off = false;
    };
    // What progress() does next.
    std::deque<Packet> packets, arriving;
    std::deque<Fetch> fetches;
    bool fetched = false;
    Bytes genuine; // the last head that was sent

    dtrain_status_t open(const char *) override { return DTRAIN_OK; }
    const WireAttr &attr() const override { return attr_; }
    size_t address(uint8_t *) override { return 0; }
    std::string route(const uint8_t *, size_t) override { return ""; }
    int event_fd() const override { return -1; }
    bool arm() override { return arriving.empty(); }
    bool progress() override {
        for (size_t i = fetches.size(); i > 0; i--) {
            const Fetch fetch = fetches.front();
            fetches.pop_front();
            if (fetch.breaks_off || fetched)
                protocol_.on_fetched(fetch.place, !fetch.breaks_off);
            else
                fetches.push_back(fetch);
        }
        fetched = false;
        while (!arriving.empty()) {
            const Packet packet = std::move(arriving.front());
            arriving.pop_front();
            if (packet.announces)
                protocol_.on_announced(packet.bytes.data(), packet.bytes.size(), &remote_);
            else
                protocol_.on_packet(packet.bytes.data(), packet.bytes.size());
        }
        for (Operation *done : std::exchange(sent_, {})) protocol_.on_sent(done, true);
        return true;
    }
    bool quiet() override { return true; }
    Link *link(const uint8_t *, size_t) override { return &links_.emplace_back(); }
    void unlink(Link *) override {
        for (Operation *done : std::exchange(sent_, {})) protocol_.on_sent(done, false);
        for (Operation *bulk : std::exchange(bulks_, {})) protocol_.on_sent(bulk, false);
        for (const Fetch &fetch : std::exchange(fetches, {}))
            protocol_.on_fetched(fetch.place, false);
    }
    Sent send(Link *, const void *head, size_t len, Operation *payload) override {
        if (packets.size() >= most_packets) return Sent::busy;
        const auto *first = static_cast<const uint8_t *>(head);
        genuine.assign(first, first + len);
        Packet packet{genuine, payload};
        if (payload) {
            const uint64_t length = payload->memory.remaining();
            packet.bytes.resize(len + length);
            payload->memory.peek(packet.bytes.data() + len, length);
        }
        FUZZ_REQUIRE(packet.bytes.size() <= attr_.packet_limit);
        const bool later = payload && packet.bytes.size() > attr_.copy_limit;
        if (later) sent_.push_back(payload);
        packets.push_back(std::move(packet));
        return later ? Sent::later : Sent::now;
    }
    Sent announce(Link *, const void *head, size_t len, Operation *bulk) override {
        if (packets.size() >= most_packets) return Sent::busy;
        const auto *first = static_cast<const uint8_t *>(head);
        packets.push_back({Bytes(first, first + len), nullptr, true});
        bulks_.push_back(bulk);
        return Sent::later;
    }
    bool withdraw(Operation *bulk) override { return std::erase(bulks_, bulk) > 0; }
    void break_off(Operation *place) override {
        for (Fetch &fetch : fetches) fetch.breaks_off |= fetch.place == place;
    }
    void fetch(Link *, Remote *, Operation *place) override { fetches.push_back({place}); }
    void drop(Link *, Remote *) override {}
    dtrain_status_t reg(const dtrain_mem_params_t &, dtrain_tp_mr_t **) override {
        return DTRAIN_ERR_UNSUPPORTED;
    }
    void dereg(dtrain_tp_mr_t *) override {}
    dtrain_status_t rkey(dtrain_tp_mr_t *, void *, size_t) override {
        return DTRAIN_ERR_UNSUPPORTED;
    }
    RegistrationCounts registrations() const override { return {}; }
    Sent put(Link *, Operation *, uint64_t, const void *) override { return Sent::broken; }
    Sent get(Link *, Operation *, uint64_t, const void *) override { return Sent::broken; }

  private:
    Protocol &protocol_;
    WireAttr attr_;
    std::deque<Link> links_;
    Remote remote_;
    std::vector<Operation *> sent_, bulks_;
};

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
