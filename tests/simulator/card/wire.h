// The wire of transports/rdm over a simulated network card. Packets take the simulated network's
// connections, one for each link. What a card reads from and writes to the memory of another
// process is copied at one moment, whether that process runs or is stopped.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "card/rig.h"
#include "common/fd.h"
#include "rdm/registrations.h"

#include <memory>

namespace dtrain::card {

using rdm::Operation;
using rdm::Sent;

// What a peer needs to know of a card.
struct Address {
    int32_t host = 0;
    uint16_t port = 0;
    uint16_t zero = 0; // it is sent as it is
};

// Memory of this process that others may access. Its first member tells them whether they still
// may.
struct Lent {
    uint64_t number = 0; // random; 0: not any more
    struct Link *link = nullptr;
    Operation *operation = nullptr;
};

// Where such memory is, for others.
struct Place {
    uint64_t number = 0, lent = 0; // of it, and its address
    uint64_t bytes = 0;
    int32_t host = 0;
    bool torn = false; // a card of processors sends it, which may stop within a number
    uint32_t pieces = 0;
    struct {
        uint64_t address, bytes;
    } piece[tp::max_iov] = {};
};

// A way for frames, from the one who has linked to the other's card, and for the numbers of bulk
// messages that are done back.
struct Link : rdm::Link {
    tp::Fd fd;
    Address peer;
    Queue<Frame> frames; // not yet sent whole
    Bytes back;          // the part of a number that has arrived
    rdm::Fault broken;
    bool told = false; // the protocol was told
};

struct Incoming {
    tp::Fd fd;
    Bytes bytes;
    bool ended = false;
};

struct Remote : rdm::Remote {
    Place place;
    std::shared_ptr<Incoming> from;
};

struct Registration : rdm::Registered {
    Lent lent;
};

// Under way between the memories of two processes.
struct Move {
    enum class Kind : uint8_t { bulk, put, get } kind{};
    Link *link = nullptr;
    Operation *operation = nullptr;
    Place place;
    std::shared_ptr<Incoming> from;   // of a bulk message
    int64_t began_ns = 0, due_ns = 0; // when it happens
    uint64_t moved = 0;               // bytes so far
    bool broken_off = false;
};

enum class Copied { all, in_part, refused, unreached };

class Wire final : public rdm::Wire {
  public:
    Wire(const tp::Host &host, rdm::Protocol &protocol) : host_(host), protocol_(protocol) {}

    dtrain_status_t open(const char *device) override;
    const rdm::WireAttr &attr() const override { return attr_; }
    size_t address(uint8_t out[rdm::max_fabric_address]) override;
    std::string route(const uint8_t *, size_t) override { return "by a simulated card"; }
    int event_fd() const override { return epoll_.get(); }
    bool arm() override;
    bool progress() override;
    bool quiet() override;
    rdm::Link *link(const uint8_t *address, size_t len) override;
    void unlink(rdm::Link *link) override;
    Sent send(rdm::Link *link, const void *head, size_t len, Operation *payload) override;
    Sent announce(rdm::Link *link, const void *head, size_t len, Operation *bulk) override;
    bool withdraw(Operation *bulk) override;
    void break_off(Operation *place) override;
    void fetch(rdm::Link *link, rdm::Remote *remote, Operation *place) override;
    void drop(rdm::Link *link, rdm::Remote *remote) override;
    dtrain_status_t reg(const dtrain_mem_params_t &mem, dtrain_tp_mr_t **mr_p) override;
    void dereg(dtrain_tp_mr_t *mr) override;
    dtrain_status_t rkey(dtrain_tp_mr_t *mr, void *buf, size_t len) override;
    Sent put(rdm::Link *link, Operation *from, uint64_t remote, const void *rkey) override;
    Sent get(rdm::Link *link, Operation *into, uint64_t remote, const void *rkey) override;
    rdm::RegistrationCounts registrations() const override {
        return {.count = registered_.count(), .bytes = registered_.bytes()};
    }

  private:
    void wake_at(int64_t due_ns);

    // Links and what arrives (links.cpp).
    bool watch(int fd, uint32_t events, void *what);
    void accept_all();
    void receive(Incoming &from, const std::shared_ptr<Incoming> &shared);
    void take_frame(const std::shared_ptr<Incoming> &from, const FrameHead &head,
                    const uint8_t *content);
    void flush(Link &link);
    void hear_back(Link &link);
    void end_bulk(uint64_t number);
    static void tell_done(const std::shared_ptr<Incoming> &from, uint64_t number);

    // Memory (memory.cpp).
    Lent *lend(Link *link, Operation *operation);
    Sent start_remote(Move::Kind kind, rdm::Link *link, Operation *operation, uint64_t remote,
                      const void *rkey);
    void start(Move move);
    bool advance(Move &move); // true: it is over
    Copied copy_part(Move &move);
    void report(const Move &move, bool ok);
    uint64_t number() const;

    const tp::Host host_;
    rdm::Protocol &protocol_;
    rdm::WireAttr attr_;
    tp::Fd epoll_, timer_, listener_;
    int64_t wakes_at_ns_ = INT64_MAX; // the timer does
    Address own_;
    bool takes_back_ = false; // withdraw() does
    bool entered_ = false;    // progress()
    List<Link> links_;
    List<std::shared_ptr<Incoming>> incoming_;
    List<Lent> lent_;
    List<Move> moves_;
    rdm::Registrations registered_;
};

} // namespace dtrain::card
