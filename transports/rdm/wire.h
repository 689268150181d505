// A network library as the protocol of this folder sees it: packets that arrive whole and in order
// on each link, bulk messages that go from the memory of one process to that of another, and remote
// memory. The libfabric and the UCX transport are two such wires, below the same connections.
//
// A packet is a head and perhaps a payload; small. A bulk message is announced with a head; its
// bytes stay with the sender until the receiver's side has a place for them and calls fetch(), or
// wants none of them and calls drop().
//
// One thread at a time. A wire calls the protocol from within progress(), arm() and unlink() only.
// From there the protocol may call everything except these.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"
#include "common/iov.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace dtrain::rdm {

inline constexpr size_t max_head = 1024;          // bytes of a head
inline constexpr size_t max_fabric_address = 352; // bytes of what address() writes
inline constexpr uint32_t least_packet = 4 << 10; // that every wire can send, head included

struct Link {              // the way to one address; wires derive theirs
    void *owner = nullptr; // the protocol's
};
struct Remote {}; // a bulk message announced to us, until fetch() or drop(); wires derive theirs

// Memory that the wire works with, from the call that was given it until sent() or fetched().
struct Operation {
    tp::IovCursor memory;                      // what of it is left, for the wire to advance
    void *wire = nullptr;                      // the wire's own
    dtrain_status_t failure = DTRAIN_ERR_PEER; // its status, if it does not end well
};

enum class Sent {
    now,   // the memory may be used again at once
    later, // sent() will tell
    busy,  // nothing happened; try again after progress()
    broken // nothing happened, the link is unusable; broken() tells, or did
};

// What the wire tells the protocol.
class Protocol {
  public:
    // The bytes are the wire's, for the time of the call.
    virtual void on_packet(const uint8_t *bytes, size_t len) = 0;
    // Fetch it or drop it, now or later. Of a lost link too: with drop().
    virtual void on_announced(const uint8_t *head, size_t len, Remote *remote) = 0;
    // Of send(), announce() and put(): the memory may be used again. ok: the packet is on its way,
    // the bulk message was fetched or dropped, the put has arrived.
    virtual void on_sent(Operation *operation, bool ok) = 0;
    // Of fetch() and get(): nobody writes to the memory any more. ok: all of it has arrived.
    virtual void on_fetched(Operation *operation, bool ok) = 0;
    // The peer or the way to it is gone; everything that came from it was told before. What is
    // still under way completes with ok = false, in unlink() at the latest.
    virtual void on_broken(Link *link, const char *why) = 0;

  protected:
    ~Protocol() = default;
};

class Wire;

} // namespace dtrain::rdm

struct dtrain_tp_mr { // one registration; wires derive theirs
    dtrain::rdm::Wire *wire = nullptr;
};

namespace dtrain::rdm {

// What was done with payloads: copied by this process, or left to the network, which took them from
// or brought them to where they belong.
struct Traffic {
    uint64_t copied = 0, in_place = 0;
};

// Memory that is registered, and what became of operations whose memory was not.
struct RegistrationCounts {
    uint64_t count = 0, bytes = 0;     // now: the caller's,
    uint64_t kept = 0, kept_bytes = 0; // and those kept for operations to come
    uint64_t hits = 0, misses = 0;     // pieces of operations that were kept; that were not
    uint64_t evictions = 0;            // of those kept
};

struct WireAttr {
    bool within_machine = false;      // nobody on another machine can link to address()
    bool closes_quietly = true;       // false: it may crash on what arrives while it closes
    bool breaks_off_any_time = false; // break_off() also of a message that was not withdrawn
    uint64_t caps = 0;                // of DTRAIN_TP_CAP_*: PUT, GET, CUDA, DMABUF
    uint64_t bulk_limit = 0;          // bytes of one bulk message
    uint32_t packet_limit = 0;        // bytes of head and payload; at least least_packet
    uint32_t copy_limit = 0;          // the same, of a packet for which send() is never Sent::later
    uint32_t eager_limit = 0;         // bytes of a payload up to which packets beat a bulk message
    uint32_t rkey_len = 0;
    uint64_t latency_ns = 0, bandwidth_bps = 0; // these four as in dtrain_tp_attr_t
    uint64_t remote_latency_ns = 0, remote_bandwidth_bps = 0;
};

class Wire {
  public:
    virtual ~Wire() = default; // everything is unlinked before

    // `device` as it was listed. On failure with the text of it (Host::fail()).
    virtual dtrain_status_t open(const char *device) = 0;
    virtual const WireAttr &attr() const = 0;
    // Writes the address that a peer's wire links to; returns its length.
    virtual size_t address(uint8_t out[max_fabric_address]) = 0;
    // The way to an address that a peer wrote, as in dtrain_tp_ops_t::route().
    virtual std::string route(const uint8_t *address, size_t len) = 0;
    // A descriptor for epoll, readable when progress() has work, if arm() returned true since the
    // last progress(); -1: there is none. arm(): false when there is work now.
    virtual int event_fd() const = 0;
    virtual bool arm() = 0;
    // False: the device is broken.
    virtual bool progress() = 0;
    // Nothing that was sent is still on its way out of here: it arrives, if the peer lives, even if
    // this process ends now. May be expensive; asked for before the end.
    virtual bool quiet() = 0;

    // `address` came from a peer that meant well (its checksum is right, and with a secret its
    // origin), of a device of this kind. nullptr, with the text: impossible. An address that nobody
    // listens at is on_broken() later, or never answers.
    virtual Link *link(const uint8_t *address, size_t len) = 0;
    // Completes everything under way on it, ok or not, before it returns; from then on the peer
    // cannot write to its memory.
    virtual void unlink(Link *link) = 0;

    // One packet: head (copied) and payload (nullptr: none; then not Sent::later), at most
    // packet_limit together.
    virtual Sent send(Link *link, const void *head, size_t len, Operation *payload) = 0;
    // A bulk message of all bytes of bulk->memory, which may be none. Its head keeps its place in
    // the order of packets. Not Sent::now.
    virtual Sent announce(Link *link, const void *head, size_t len, Operation *bulk) = 0;
    // Takes the memory of an announced message back at once, if the wire can: true, and it is as if
    // it had not been announced; the receiver's side is told by the caller, so that it drops it or
    // breaks off. False: on_sent() comes when its receiver has fetched or dropped it.
    virtual bool withdraw(Operation *bulk) = 0;
    // Ends a fetch() whose message was withdrawn: on_fetched() with ok = false, in progress().
    // Called once for a fetch().
    virtual void break_off(Operation *place) = 0;
    // Gets the beginning of the bulk message: as many bytes as place->memory has, which are no more
    // than were announced. The bulk message is done with then.
    virtual void fetch(Link *link, Remote *remote, Operation *place) = 0;
    virtual void drop(Link *link, Remote *remote) = 0; // link nullptr: its sender is a
                                                       // stranger, or gone

    // Remote memory, where attr().caps has it; as in dtrain_transport.h. These complete with
    // on_sent() and on_fetched().
    virtual dtrain_status_t reg(const dtrain_mem_params_t &mem, dtrain_tp_mr_t **mr_p) = 0;
    virtual void dereg(dtrain_tp_mr_t *mr) = 0;
    virtual dtrain_status_t rkey(dtrain_tp_mr_t *mr, void *buf, size_t len) = 0;
    virtual Sent put(Link *link, Operation *from, uint64_t remote_address, const void *rkey) = 0;
    virtual Sent get(Link *link, Operation *into, uint64_t remote_address, const void *rkey) = 0;

    virtual RegistrationCounts registrations() const = 0;
    // What arrives in packets is the protocol's to count.
    const Traffic &traffic() const { return traffic_; }

  protected:
    Traffic traffic_;
};

} // namespace dtrain::rdm
