// Packs on their way: one that is being filled for each member, and those with the transport.
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

// Under the agent's lock, its destruction too. What is lost with a connection is not told: who
// misses an answer asks again.
class PackSender {
  public:
    // tag: of all messages. peers: by member, to whom packs are charged; outlives this.
    PackSender(engine::Agent &agent, engine::Mesh &mesh, uint64_t tag, PeerMemory *peers = nullptr)
        : agent_(agent), mesh_(mesh), tag_(tag), peers_(peers) {}

    // Copies; bytes: at most most_packed. DTRAIN_ERR_BUSY: not taken, the transport is behind.
    template <class Header>
    Status add(uint32_t member, const Header &header, const void *payload, uint64_t bytes) {
        if (Status s = make_room(member, bytes); s != DTRAIN_OK) return s;
        open_[member]->pack.add(header, payload, bytes);
        open_[member]->added++;
        added_++;
        return DTRAIN_OK;
    }
    // Sends what was added; returns how many messages left.
    int flush() { return filled_ > 0 ? flush_all() : 0; }
    void flush(uint32_t member);
    void drop(uint32_t member); // what was added
    void close();               // poll idle() before the destruction
    bool idle() const { return pending_ == 0; }
    bool waiting() const { return filled_ > 0; } // something is added and not sent: ...
    uint32_t added() const { return added_; }    // ... so many

  private:
    struct Parcel : engine::Completion {
        PackSender *sender = nullptr;
        uint32_t member = 0;
        Pack pack;
        std::unique_ptr<memory::Registration> registration; // of its memory, and goes before it
        uint32_t added = 0;                                 // while it is being filled
        Charge charge;
        std::list<Parcel>::iterator place;
    };
    static void sent(engine::Completion *self, const dtrain_tp_done_t &event);
    int flush_all();
    Status make_room(uint32_t member, uint64_t bytes);
    bool send(uint32_t member);       // false: the transport is behind
    void close_open(uint32_t member); // it is no longer filled
    void forget(Parcel &parcel);
    void add_spare();

    engine::Agent &agent_;
    engine::Mesh &mesh_;
    const uint64_t tag_;
    PeerMemory *const peers_;
    std::list<Parcel> parcels_, spare_; // in use; nodes move between them
    std::vector<Parcel *> open_;        // by member: is being filled
    uint32_t filled_ = 0, added_ = 0;   // of open_, and what is in them
    uint32_t pending_ = 0;              // with the transport
};

} // namespace dtrain::ps
