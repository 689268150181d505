// A wire whose packets come back to the device that sent them. It takes as many at a time as a case
// lets it, and releases the memory of payloads in progress(). Bulk messages are announced, but
// what is fetched never comes.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "wire_without_cards.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

namespace dtrain::test {

class LoopedWire final : public WireWithoutCards {
  public:
    explicit LoopedWire(rdm::Protocol *protocol) : protocol_(*protocol) {
        attr_.packet_limit = rdm::least_packet;
        attr_.copy_limit = 256;
        attr_.eager_limit = 64 << 10;
        attr_.bulk_limit = 1 << 20;
    }
    size_t room = SIZE_MAX;      // packets that it takes until told otherwise
    uint32_t tries = 0;          // to send a packet
    bool stuck = false;          // nothing comes back
    uint32_t late = 0;           // calls of progress() without anything
    uint32_t *unheard = nullptr; // gets how many packets had not come back at the end

    ~LoopedWire() override {
        if (unheard) *unheard = uint32_t(packets_.size());
    }
    void break_link(dtrain_status_t status) {
        protocol_.on_broken(&link_, {.why = "broken by the test", .status = status});
    }

    bool arm() override { return packets_.empty(); }
    bool progress() override {
        if (late) return late--, true;
        for (rdm::Operation *place : std::exchange(broken_off_, {}))
            protocol_.on_fetched(place, false);
        for (size_t n = stuck ? 0 : packets_.size(); n; n--) {
            const Packet packet = std::move(packets_.front());
            packets_.pop_front();
            if (packet.payload) protocol_.on_sent(packet.payload, true);
            if (packet.announces)
                protocol_.on_announced(packet.bytes.data(), packet.bytes.size(), &remote_);
            else
                protocol_.on_packet(packet.bytes.data(), packet.bytes.size());
        }
        return true;
    }
    bool quiet() override { return unheard || packets_.empty(); }
    rdm::Link *link(const uint8_t *, size_t) override { return &link_; }
    void unlink(rdm::Link *) override {
        for (Packet &packet : packets_)
            if (packet.payload) protocol_.on_sent(std::exchange(packet.payload, nullptr), false);
        if (!unheard) packets_.clear();
    }
    rdm::Sent send(rdm::Link *, const void *head, size_t len, rdm::Operation *payload) override {
        tries++;
        if (!room) return rdm::Sent::busy;
        room--;
        const auto *first = static_cast<const uint8_t *>(head);
        Packet packet{std::vector<uint8_t>(first, first + len), payload};
        if (payload) {
            const uint64_t length = payload->memory.remaining();
            packet.bytes.resize(len + length);
            payload->memory.peek(packet.bytes.data() + len, length);
        }
        assert_true(packet.bytes.size() <= attr_.packet_limit);
        if (packet.bytes.size() <= attr_.copy_limit) packet.payload = nullptr;
        const bool now = !packet.payload;
        packets_.push_back(std::move(packet));
        return now ? rdm::Sent::now : rdm::Sent::later;
    }
    rdm::Sent announce(rdm::Link *, const void *head, size_t len, rdm::Operation *) override {
        const auto *first = static_cast<const uint8_t *>(head);
        packets_.push_back({std::vector<uint8_t>(first, first + len), nullptr, true});
        return rdm::Sent::later;
    }
    bool withdraw(rdm::Operation *) override { return true; }
    void break_off(rdm::Operation *place) override {
        assert_int_equal(std::count(broken_off_.begin(), broken_off_.end(), place), 0);
        broken_off_.push_back(place);
    }
    void fetch(rdm::Link *, rdm::Remote *, rdm::Operation *) override {} // takes forever
    void drop(rdm::Link *, rdm::Remote *) override {}

  private:
    struct Packet {
        std::vector<uint8_t> bytes;
        rdm::Operation *payload;
        bool announces = false;
    };
    rdm::Protocol &protocol_;
    rdm::Link link_;
    rdm::Remote remote_;
    std::vector<rdm::Operation *> broken_off_; // told in progress()
    std::deque<Packet> packets_;
};

} // namespace dtrain::test
