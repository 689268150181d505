// A wire of the protocol over libfabric and UCX, whose packets the input moves.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/fuzz/host_services.h"

#include "rdm/frame.h"
#include "tests/transport/wire_without_cards.h"

#include <deque>
#include <utility>

namespace dtrain::fuzz {

using namespace dtrain::rdm;

inline constexpr size_t most_packets = 64; // that wait on a wire

class FuzzWire final : public dtrain::test::WireWithoutCards {
  public:
    explicit FuzzWire(Protocol *protocol) : protocol_(*protocol) {
        attr_.packet_limit = attr_.head_limit = least_packet;
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
    bool busy = false;            // nothing can be sent now
    const char *broken = nullptr; // what progress() reports of the newest link
    Bytes genuine;                // the last head that was sent
    // Set when the device closes: it waits for what may never come, so every look takes time.
    StoppedClock *closing = nullptr;

    bool arm() override { return arriving.empty(); }
    WireAttr &settings() { return attr_; }
    bool progress() override {
        if (closing != nullptr) closing->now += 20'000'000;
        for (size_t i = fetches.size(); i > 0; i--) {
            const Fetch fetch = fetches.front();
            fetches.pop_front();
            if (fetch.breaks_off || fetched)
                protocol_.on_fetched(fetch.place, !fetch.breaks_off);
            else
                fetches.push_back(fetch);
        }
        fetched = false;
        if (const char *why = std::exchange(broken, nullptr)) {
            const auto linked = [](const Link &link) { return link.owner != nullptr; };
            const auto last = std::find_if(links_.rbegin(), links_.rend(), linked);
            if (last != links_.rend()) protocol_.on_broken(&*last, {.why = why});
        }
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
    void unlink(Link *link) override {
        link->owner = nullptr;
        for (Operation *done : std::exchange(sent_, {})) protocol_.on_sent(done, false);
        for (Operation *bulk : std::exchange(bulks_, {})) protocol_.on_sent(bulk, false);
        for (const Fetch &fetch : std::exchange(fetches, {}))
            protocol_.on_fetched(fetch.place, false);
    }
    Sent send(Link *, const void *head, size_t len, Operation *payload) override {
        if (busy || packets.size() >= most_packets) return Sent::busy;
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
        if (busy || packets.size() >= most_packets) return Sent::busy;
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

  private:
    Protocol &protocol_;
    std::deque<Link> links_;
    Remote remote_;
    std::vector<Operation *> sent_, bulks_;
};

} // namespace dtrain::fuzz
