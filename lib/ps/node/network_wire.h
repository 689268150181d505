// Carries the requests and answers of a client as tagged messages.
// SPDX-License-Identifier: Apache-2.0
//
// A request goes to the server with the worker as its source. Its answer comes back directly into
// the caller's memory, with a tag made of table and sequence number. Small requests and small
// answers are collected in packs; no receive is posted for a packed answer. A pack is sent when no
// packed request to that server is in flight, or when it has as many requests as are in flight, so
// that both sides have a pack to work on and packs stay large. It waits a few rounds at most, since
// answers may take long.
#pragma once
#include "engine/mesh.h"
#include "engine/tag.h"
#include "ps/client/client.h"
#include "ps/node/damage.h"
#include "ps/node/header_memory.h"
#include "ps/node/inbox.h"
#include "ps/node/pack_sender.h"
#include "ps/table/server_list.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace dtrain::ps {

inline constexpr uint64_t answer_bit = uint64_t{1} << 37, packed_bit = uint64_t{1} << 36;

constexpr uint64_t request_tag(uint32_t worker_member) {
    return engine::make_tag(0, worker_member, engine::TagClass::parameter_server, 0);
}
// Sequence numbers in flight are close together, so their low bits are unique.
constexpr uint64_t answer_tag(uint32_t server_member, uint32_t table, uint64_t sequence) {
    return engine::make_tag(0, server_member, engine::TagClass::parameter_server,
                            answer_bit | uint64_t{table} << 16 | engine::low(sequence, 16));
}
constexpr uint64_t packed_answers_tag(uint32_t server_member) {
    return engine::make_tag(0, server_member, engine::TagClass::parameter_server,
                            answer_bit | packed_bit);
}

// All calls need the agent's lock, also the destructor.
class NetworkWire final {
  public:
    // servers: must outlive this object.
    NetworkWire(engine::Agent &agent, engine::Mesh &mesh, uint32_t self, const ServerList &servers);

    Status open(Client &client); // begins to listen for packs
    bool close(); // when idle(); call until true: then no receive is with a transport
    Status send(uint32_t server, Outgoing &request);
    void withdraw(uint32_t server, Outgoing &request);
    void settled(uint32_t server, Outgoing &request);
    // Call it outside of calls into the client: reports withdrawals that completed at once, flushes
    // packs and discards late answers. Returns 1 while requests wait in packs for others to come;
    // what waits for the transport wakes nobody.
    int run() {
        if (packs_.waiting() || !withdrawn_.empty() || !copies_withdrawn_.empty() ||
            !late_.empty() || inbox_.deaf())
            move();
        return packs_.waiting() && !blocked_ ? 1 : 0;
    }
    // Whether no message is in flight and no request waits in a pack.
    bool idle() const {
        return pending_ == 0 && withdrawn_.empty() && copies_withdrawn_.empty() && packs_.idle() &&
               !packs_.waiting();
    }
    // After a server is lost or has left. Its requests are withdrawn by the client, one by one: the
    // connection is not only the tables', and a collective's last message may be on its way there.
    void drop(uint32_t server) { packs_.drop(servers_.member(server)); }
    size_t slots() const { return slots_.size(); } // the peak number of unpacked requests

  private:
    struct Slot;
    struct Half : engine::Completion {
        Slot *slot = nullptr;
        bool pending = false;
    };
    struct Headers {
        RequestHeader request;
        ResponseHeader response;
    };
    struct Slot {
        NetworkWire *wire = nullptr;
        Outgoing *request = nullptr;
        uint32_t server = 0;
        Half sent, answered;
        bool withdrawing = false;
        int32_t unanswered = 0; // number of sends minus number of answers
        Headers *headers = nullptr;
    };
    // Answers with this tag may still come although their request is settled.
    struct Late {
        uint64_t tag;
        int64_t until;
    };
    static void sent(engine::Completion *self, const dtrain_tp_done_t &event);
    static void answered(engine::Completion *self, const dtrain_tp_done_t &event);
    Slot &slot_of(uint32_t server, Outgoing &request);
    Status pack(uint32_t server, Outgoing &request);
    void take_pack(uint32_t member, const char *message, uint64_t bytes);
    Status listen(Slot &slot);
    void register_scratch(uint32_t member, const Outgoing &request);
    void settle(Slot &slot);
    void move();
    void flush_when_worth();
    void purge_late(int64_t now);

    engine::Agent &agent_;
    engine::Mesh &mesh_;
    Client *client_ = nullptr;
    const uint32_t self_;
    const ServerList &servers_;
    uint32_t pending_ = 0;
    HeaderMemory headers_;
    std::vector<std::unique_ptr<Slot>> slots_;
    std::vector<Slot *> free_, withdrawn_;
    std::vector<Outgoing *> copies_withdrawn_;
    PackSender packs_;
    Inbox inbox_;                  // receives packed answers
    std::vector<uint32_t> copies_; // by server: packed requests that are not settled
    uint32_t all_copies_ = 0;      // packed requests of all servers that are not settled
    bool blocked_ = false;         // the transport did not take all packs
    uint32_t held_ = 0;            // rounds without a packed answer while requests wait in packs
    std::deque<Late> late_;
    Damage damage_;
    int64_t next_purge_ = 0;
};

} // namespace dtrain::ps
