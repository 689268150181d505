// Fills one pack for each member and sends it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/mesh.h"
#include "memory/registration.h"
#include "ps/node/pack.h"
#include "ps/server/peer_memory.h"

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

namespace dtrain::ps {

// All calls need the agent's lock, also the destructor. Packs that are lost with a connection are
// not reported, since a client repeats requests that get no answer.
class PackSender {
  public:
    // tag: of all messages. peers: by member, charged for the packs; must outlive this object.
    PackSender(engine::Agent &agent, engine::Mesh &mesh, uint64_t tag, PeerMemory *peers = nullptr)
        : agent_(agent), mesh_(mesh), tag_(tag), peers_(peers) {}

    // Copies it into the member's pack; bytes: at most most_packed. DTRAIN_ERR_BUSY: not added,
    // since the pack is full and the transport is busy.
    template <class Header>
    Status add(uint32_t member, const Header &header, const void *payload, uint64_t bytes) {
        if (Status s = make_room(member, bytes); s != DTRAIN_OK) return s;
        open_[member]->pack.add(header, payload, bytes);
        open_[member]->added++;
        added_++;
        return DTRAIN_OK;
    }
    // Sends all packs that have content; returns how many were sent.
    int flush() { return filled_ > 0 ? flush_all() : 0; }
    void flush(uint32_t member);
    void drop(uint32_t member); // discards the member's packs
    void close();               // poll idle() before destruction
    bool idle() const { return pending_ == 0; }
    bool waiting() const { return filled_ > 0; } // some packs are not sent, with ...
    uint32_t added() const { return added_; }    // ... this many requests or answers

  private:
    struct Parcel : engine::Completion {
        PackSender *sender = nullptr;
        uint32_t member = 0;
        Pack pack;
        std::unique_ptr<memory::Registration> registration; // of the pack; destroyed before it
        uint32_t added = 0;                                 // requests or answers, until it is sent
        Charge charge;
        std::list<Parcel>::iterator place;
    };
    static void sent(engine::Completion *self, const dtrain_tp_done_t &event);
    int flush_all();
    Status make_room(uint32_t member, uint64_t bytes);
    bool send(uint32_t member);       // false: the transport is busy
    void close_open(uint32_t member); // the member's pack is no longer filled
    void discard_open(uint32_t member);
    void forget(Parcel &parcel);
    void add_spare();

    engine::Agent &agent_;
    engine::Mesh &mesh_;
    const uint64_t tag_;
    PeerMemory *const peers_;
    std::list<Parcel> parcels_, spare_; // in use; unused. Nodes move between the lists
    std::vector<Parcel *> open_;        // by member: the pack that is being filled
    uint32_t filled_ = 0, added_ = 0;   // packs in open_; requests or answers in them
    uint32_t pending_ = 0;              // packs with the transport
};

} // namespace dtrain::ps
