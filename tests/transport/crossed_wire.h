// Two wires, each of which leads to the other by a relay, which passes on what it likes. Bulk
// messages are copied from one memory to the other, as a card does.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "wire_without_cards.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

namespace dtrain::test {

class CrossedWire final : public WireWithoutCards {
  public:
    struct Packet {
        std::vector<uint8_t> bytes;
        rdm::Operation *bulk = nullptr; // it announces that
    };
    explicit CrossedWire(rdm::Protocol *protocol) : protocol_(*protocol) {
        attr_.packet_limit = attr_.head_limit = attr_.copy_limit = rdm::least_packet;
        attr_.eager_limit = 8 << 10;
        attr_.bulk_limit = 1 << 20;
        attr_.caps = DTRAIN_TP_CAP_PUT | DTRAIN_TP_CAP_GET;
    }
    std::function<void(Packet)> relay; // gets what is sent
    CrossedWire *other = nullptr;
    std::deque<Packet> arriving;
    uint32_t late = 0; // calls of progress() without a report of what was fetched from here
    // Nothing passes any more: the other one is about to go.
    void part() {
        relay = [](const Packet &) {};
        other = nullptr;
    }

    size_t links() const { return links_.size(); } // that were made so far

    bool arm() override { return arriving.empty(); }
    bool progress() override {
        if (late > 0)
            late--;
        else
            for (rdm::Operation *bulk : std::exchange(over_, {})) protocol_.on_sent(bulk, true);
        for (const Fetch &fetch : std::exchange(fetches_, {})) move(fetch);
        while (!arriving.empty()) {
            const Packet packet = std::move(arriving.front());
            arriving.pop_front();
            if (packet.bulk)
                protocol_.on_announced(packet.bytes.data(), packet.bytes.size(),
                                       new Announced{{}, packet.bulk});
            else
                protocol_.on_packet(packet.bytes.data(), packet.bytes.size());
        }
        return true;
    }
    bool quiet() override { return true; }
    rdm::Link *link(const uint8_t *, size_t) override { return &links_.emplace_back(); }
    void unlink(rdm::Link *) override {
        for (rdm::Operation *bulk : std::exchange(bulks_, {})) protocol_.on_sent(bulk, false);
        for (rdm::Operation *bulk : std::exchange(over_, {})) protocol_.on_sent(bulk, late == 0);
        for (const Fetch &fetch : std::exchange(fetches_, {}))
            protocol_.on_fetched(fetch.place, false);
    }
    rdm::Sent send(rdm::Link *, const void *head, size_t len, rdm::Operation *payload) override {
        if (++calls_ % 5 == 0) return rdm::Sent::busy; // now and then
        const auto *first = static_cast<const uint8_t *>(head);
        Packet packet{std::vector<uint8_t>(first, first + len)};
        if (payload) {
            const uint64_t length = payload->memory.remaining();
            packet.bytes.resize(len + length);
            payload->memory.gather(packet.bytes.data() + len, length);
        }
        assert_true(packet.bytes.size() <= attr_.packet_limit);
        relay(std::move(packet));
        return rdm::Sent::now;
    }
    rdm::Sent announce(rdm::Link *, const void *head, size_t len, rdm::Operation *bulk) override {
        const auto *first = static_cast<const uint8_t *>(head);
        bulks_.push_back(bulk);
        relay({std::vector<uint8_t>(first, first + len), bulk});
        return rdm::Sent::later;
    }
    bool withdraw(rdm::Operation *bulk) override { return std::erase(bulks_, bulk) > 0; }
    void break_off(rdm::Operation *place) override {
        for (Fetch &fetch : fetches_)
            if (fetch.place == place) fetch.bulk = nullptr;
    }
    void fetch(rdm::Link *, rdm::Remote *remote, rdm::Operation *place) override {
        fetches_.push_back({static_cast<Announced *>(remote)->bulk, place});
        delete static_cast<Announced *>(remote);
    }
    void drop(rdm::Link *, rdm::Remote *remote) override {
        rdm::Operation *bulk = static_cast<Announced *>(remote)->bulk;
        if (other && std::erase(other->bulks_, bulk) > 0) other->over_.push_back(bulk);
        delete static_cast<Announced *>(remote);
    }
    rdm::Sent put(rdm::Link *, rdm::Operation *, uint64_t, const void *) override {
        return rdm::Sent::now;
    }
    rdm::Sent get(rdm::Link *, rdm::Operation *, uint64_t, const void *) override {
        return rdm::Sent::now;
    }

  private:
    struct Announced : rdm::Remote {
        rdm::Operation *bulk;
    };
    struct Fetch {
        rdm::Operation *bulk, *place;
    };
    void move(const Fetch &fetch) {
        const bool ok = other && std::erase(other->bulks_, fetch.bulk) > 0;
        if (ok) {
            std::vector<uint8_t> bytes(fetch.place->memory.remaining());
            fetch.bulk->memory.peek(bytes.data(), bytes.size());
            fetch.place->memory.scatter(bytes.data(), bytes.size());
            other->over_.push_back(fetch.bulk);
        }
        protocol_.on_fetched(fetch.place, ok);
    }

    rdm::Protocol &protocol_;
    std::deque<rdm::Link> links_;
    std::vector<rdm::Operation *> bulks_, over_; // announced; fetched or dropped
    std::vector<Fetch> fetches_;
    uint64_t calls_ = 0;
};

} // namespace dtrain::test
