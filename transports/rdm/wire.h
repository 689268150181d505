// The interface of a network library for the protocol of this folder: packets that arrive whole and
// in order on each link, bulk messages that go from the memory of one process to that of another,
// and remote memory. The libfabric and the UCX transport are two such wires, below the same
// connections.
//
// A packet is small: a head and perhaps a payload. A bulk message is announced with a head; its
// bytes stay with the sender until the receiver's side has a place for them and calls fetch(), or
// does not want them and calls drop().
//
// One thread at a time. A wire calls the protocol only from within progress(), arm() and unlink().
// From there the protocol may call all functions except these three.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"
#include "common/iov.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace dtrain::rdm {

inline constexpr size_t max_head = 1024;          // bytes of a head
inline constexpr size_t max_fabric_address = 352; // bytes that address() may write
// Every wire can send this many bytes, head included.
inline constexpr uint32_t least_packet = 4 << 10;

struct Link {              // the link to one address; wires derive their own type
    void *owner = nullptr; // belongs to the protocol
};
// A bulk message announced by the peer, until fetch() or drop(); wires derive their own.
struct Remote {};

// Memory that the wire uses, from the call that passes it until sent() or fetched().
struct Operation {
    tp::IovCursor memory;                      // the rest of it, advanced by the wire
    void *wire = nullptr;                      // belongs to the wire
    dtrain_status_t failure = DTRAIN_ERR_PEER; // its status if it fails
};

enum class Sent {
    now,   // the memory may be reused at once
    later, // sent() will report when
    busy,  // nothing happened; try again after progress()
    broken // nothing happened, the link is unusable; broken() reports it, or did
};

// Why a link is unusable.
struct Fault {
    const char *why = nullptr; // none
    // DTRAIN_ERR_NO_MEMORY: this process lacks memory. The peer does not know.
    dtrain_status_t status = DTRAIN_ERR_PEER;
};

// The wire's reports to the protocol.
class Protocol {
  public:
    // The bytes belong to the wire and are valid during the call.
    virtual void on_packet(const uint8_t *bytes, size_t len) = 0;
    // The protocol must fetch or drop it, now or later; also on a lost link: then with drop().
    virtual void on_announced(const uint8_t *head, size_t len, Remote *remote) = 0;
    // For send(), announce() and put(): the memory may be reused. ok: the packet is on its way, the
    // bulk message was fetched or dropped, the put has arrived.
    virtual void on_sent(Operation *operation, bool ok) = 0;
    // For fetch() and get(): the memory is not written any more. ok: all of it has arrived.
    virtual void on_fetched(Operation *operation, bool ok) = 0;
    // The peer or the route to it is gone, or the wire has to give the link up; everything that
    // arrived from it was reported before.
    // Operations in progress complete with ok = false, in unlink() at the latest.
    virtual void on_broken(Link *link, const Fault &fault) = 0;

  protected:
    ~Protocol() = default;
};

class Wire;

} // namespace dtrain::rdm

struct dtrain_tp_mr {                  // one registration; wires derive their own type
    dtrain::rdm::Wire *wire = nullptr; // nullptr: no wire knows of it
};

namespace dtrain::rdm {

// How payloads were moved: copied by this process, or moved by the network from and to their final
// place.
struct Traffic {
    uint64_t copied = 0, in_place = 0;
};

// Registered memory, and statistics on operations whose memory was not registered.
struct RegistrationCounts {
    uint64_t count = 0, bytes = 0;     // now: registered by the caller,
    uint64_t kept = 0, kept_bytes = 0; // and kept for later operations
    uint64_t hits = 0, misses = 0;     // pieces of operations found among the kept ones; not found
    uint64_t evictions = 0;            // of kept ones
};

struct WireAttr {
    bool within_machine = false;      // no device on another machine can link to address()
    bool closes_quietly = true;       // false: it may crash on packets that arrive while it closes
    bool breaks_off_any_time = false; // break_off() also works on a message that was not withdrawn
    bool by_processors = false; // they move all bytes, not cards that access memory by themselves
    uint64_t caps = 0;          // some of DTRAIN_TP_CAP_*: PUT, GET, CUDA, DMABUF
    uint64_t bulk_limit = 0;    // bytes of one bulk message
    uint32_t packet_limit = 0;  // bytes of head and payload; at least least_packet
    uint32_t head_limit = max_head; // bytes of head that send() takes
    uint32_t copy_limit = 0;        // bytes of a packet up to which send() is never Sent::later
    uint32_t eager_limit = 0;       // bytes of a payload up to which packets beat a bulk message
    uint32_t rkey_len = 0;
    uint64_t latency_ns = 0, bandwidth_bps = 0; // these four as in dtrain_tp_attr_t
    uint64_t remote_latency_ns = 0, remote_bandwidth_bps = 0;
};

// What moves packets and bulk messages on links: a wire, or what protects a connection (sealed.h).
class Carrier {
  public:
    virtual ~Carrier() = default;

    // Sends one packet: head (copied; at most head_limit) and payload (nullptr: none; then never
    // Sent::later), together at most packet_limit.
    virtual Sent send(Link *link, const void *head, size_t len, Operation *payload) = 0;
    // Announces a bulk message of all bytes of bulk->memory, which may be none. Its head keeps its
    // place in the order of packets. Never returns Sent::now.
    virtual Sent announce(Link *link, const void *head, size_t len, Operation *bulk) = 0;
    // Takes back the memory of an announced message at once, if the wire can. True: as if it had
    // not been announced; the caller tells the receiver's side to drop it or break off. False:
    // on_sent() is called when the receiver has fetched or dropped it.
    virtual bool withdraw(Operation *bulk) = 0;
    // Ends a fetch() whose message was withdrawn: progress() then calls on_fetched() with ok =
    // false. Called at most once per fetch().
    virtual void break_off(Operation *place) = 0;
    // Gets the beginning of the bulk message: as many bytes as place->memory has, at most as many
    // as were announced. This ends the bulk message.
    virtual void fetch(Link *link, Remote *remote, Operation *place) = 0;
    // `link` is nullptr if its sender is a stranger or gone.
    virtual void drop(Link *link, Remote *remote) = 0;
};

class Wire : public Carrier { // everything must be unlinked before its end
  public:
    // Opens `device`, a name from the list. On failure it sets the text (Host::fail()).
    virtual dtrain_status_t open(const char *device) = 0;
    virtual const WireAttr &attr() const = 0;
    // Writes the address that a peer's wire links to; returns its length.
    virtual size_t address(uint8_t out[max_fabric_address]) = 0;
    // The route to an address that a peer wrote, as in dtrain_tp_ops_t::route().
    virtual std::string route(const uint8_t *address, size_t len) = 0;
    // A descriptor for epoll, readable when progress() has work, if arm() returned true since the
    // last progress(); -1: there is none. arm() returns false if there is work now.
    virtual int event_fd() const = 0;
    virtual bool arm() = 0;
    // False: the device is broken.
    virtual bool progress() = 0;
    // True: everything that was sent has left this process and arrives if the peer lives, even if
    // this process ends now. May be expensive; called before the end.
    virtual bool quiet() = 0;

    // `address` is from a peer of this kind that is not hostile (its checksum is right and, with a
    // secret, its origin). nullptr, with the text: impossible. For an address without a listener,
    // on_broken() is called later, or there is never an answer.
    virtual Link *link(const uint8_t *address, size_t len) = 0;
    // Completes everything in progress on the link, ok or not, before it returns; afterwards the
    // peer cannot write to its memory.
    virtual void unlink(Link *link) = 0;

    // Remote memory, if attr().caps has it; as in dtrain_transport.h. Operations complete with
    // on_sent() and on_fetched().
    virtual dtrain_status_t reg(const dtrain_mem_params_t &mem, dtrain_tp_mr_t **mr_p) = 0;
    virtual void dereg(dtrain_tp_mr_t *mr) = 0;
    virtual dtrain_status_t rkey(dtrain_tp_mr_t *mr, void *buf, size_t len) = 0;
    virtual Sent put(Link *link, Operation *from, uint64_t remote_address, const void *rkey) = 0;
    virtual Sent get(Link *link, Operation *into, uint64_t remote_address, const void *rkey) = 0;

    virtual RegistrationCounts registrations() const = 0;
    // The protocol counts what arrives in packets.
    const Traffic &traffic() const { return traffic_; }

  protected:
    Traffic traffic_;
};

} // namespace dtrain::rdm
