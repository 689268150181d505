// The handshakes in progress on a device: attempts to connect, peers that introduce themselves, and
// deadlines. Unauthenticated peers cost at most max_strangers small objects and links, and never a
// working connection.
//
//   initiator                         responder
//   hello: Introduction, Address ->
//                               <-    reply: Introduction, Proof   (or a verdict)
//   proof: Proof                ->
//                               <-    verdict, and if it accepts:
//   confirmation                ->
//
// Of two attempts toward each other, that of the device with the smaller id continues.
//
// A responder without memory, or with too many strangers, drops a hello. So the initiator says it
// again, the same one and ever more rarely, until there is a reply. A responder that has it already
// drops it before it has cost anything. One that gives up after its reply says bye: the initiator
// fails at once then, and the core tries again.
// common/hello.h has the proofs.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "protocol/handshakes.h"
#include "rdm/address.h"
#include "rdm/shared.h"

#include <memory>

namespace dtrain::rdm {

struct Introduction { // sent as it is; integers little-endian
    tp::Hello hello;
    uint32_t number = 0;
    uint64_t token = 0;
};
static_assert(sizeof(Introduction) == 112);

// What is kept of the address of a peer: anybody can make this process keep it.
struct PeerProcess {
    DeviceId id{};
    uint64_t machine = 0;
    uint32_t pid = 0; // little-endian
    static PeerProcess of(const Address &peer) { return {peer.id, peer.machine, peer.pid}; }
};

struct Handshake {
    tp::Role role{};
    Kind due{}; // what to send next; none: wait for the peer
    tp::Verdict verdict = tp::Verdict::accepted;
    uint8_t hellos = 0;           // initiator: so many were sent
    bool proven = false;          // its own proof was sent, also that in a reply
    bool accepted = false;        // responder: the peer was told, and has to confirm
    bool makes_way = false;       // initiator: for an attempt of the peer that was accepted
    const char *broken = nullptr; // why the link is broken
    int64_t deadline_ns = 0;      // INT64_MAX: none
    std::unique_ptr<Channel> channel;
    Connection *connection = nullptr; // initiator: the connection it is for
    PeerProcess peer;
    tp::Hello own, other;
    tp::Guard guard;
    tp::Link<Handshake> link;

    // Initiator: the reply has come. Responder: it was sent.
    bool is_answered() const { return proven || due == Kind::proof; }
};
// The core's guard adds a little more than 100 bytes.
static_assert(sizeof(Handshake) + sizeof(Channel) <= 400,
              "state that an unauthenticated peer can make us hold");

class Handshakes {
  public:
    using Owner = protocol::HandshakeOwner<Connection, Route>;
    Handshakes(Shared *shared, Owner *owner)
        : shared_(*shared), owner_(*owner), refusals_(shared->host, shared->name) {}
    ~Handshakes() { clear(); }
    void clear();

    void open(const Address &own);
    // Fails, with a text, if there is no memory or no route.
    dtrain_status_t connect(const Address &peer, Connection *connection);
    void forget(Handshake *handshake);
    bool idle() const { return strangers_.empty() && accepted_.empty() && attempts_.empty(); }
    // Processes what has arrived; body is what follows the head.
    void on_hello(const uint8_t *body, size_t len);
    void on_packet(Handshake *handshake, const Head &head, const uint8_t *body, size_t len);
    // Sends what is due, and gives up broken and late handshakes. May call the owner.
    void work();

    static std::unique_ptr<Channel> open_channel(Shared &shared, const uint8_t *address,
                                                 size_t len);
    static void close_channel(Shared &shared, std::unique_ptr<Channel> channel);

  private:
    using List = tp::List<Handshake, &Handshake::link>;
    static constexpr int64_t deadline_ns = 8'000'000'000;
    static constexpr int64_t stranger_ns = 3'000'000'000; // of a peer that has not proven itself
    static constexpr int64_t refusal_ns = 500'000'000;    // time for the last message to arrive
    static constexpr int64_t hello_ns = 1'000'000'000; // until the second hello; then twice as long

    std::unique_ptr<Handshake> make(tp::Role role, const Address &peer);
    void add(std::unique_ptr<Handshake> handshake);
    bool offer(Handshake &handshake) const;
    tp::Proof proof_of(const Handshake &handshake) const;
    bool is_proven(const Handshake &handshake, const tp::Proof &by_peer) const;
    static Verdict protect(Handshake &handshake);
    Introduction introduction(const Handshake &handshake) const;
    bool is_known(const Introduction &introduction, const DeviceId &peer) const;
    bool greets_again(const Handshake &handshake) const;
    Sent send_due(Handshake &handshake);
    void advance(Handshake *handshake);
    void finish(Handshake *handshake);
    void give_up(Handshake *handshake, dtrain_status_t status, const char *reason);
    List &list_of(const Handshake &handshake);
    static bool is_guest(const Handshake &handshake);
    void accept(Handshake *handshake);
    Handshake *attempt_at(const DeviceId &peer) const;

    Shared &shared_;
    Owner &owner_;
    Address own_;
    tp::Path path_{};
    List strangers_, accepted_, attempts_; // incoming until and after the verdict, outgoing
    uint32_t stranger_count_ = 0, guest_count_ = 0; // guest: accepted, but not expected
    protocol::Refusals refusals_;
};

} // namespace dtrain::rdm
