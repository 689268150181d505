// The memory of one connection, and what both of its ends do with it.
// SPDX-License-Identifier: Apache-2.0
//
// A connection carries messages one way, from the connector to the acceptor, as frames in the ring
// `data`. Messages up to eager_limit go with their header, while the acceptor has promised to keep
// them (credit). Others are offered; the acceptor answers through the ring `grants` when somebody
// waits for them, and their bytes follow in pieces, between which other frames find room.
//
// Where each side can reach the other's memory, long messages in one piece do without the ring: the
// offer and the grant tell where the message is and where it goes, both sides copy parts of it, the
// connector tells when it has found nothing more to copy, and the acceptor then grants nothing
// more: it is through. If a copy fails on either side, because the peer is gone or the kernel
// cannot reach its memory, the acceptor asks for pieces, and the connection tells who is gone.
//
// Either side may give up a message at any time and has its memory back. An acceptor that does goes
// on as before and throws away what comes. A connector says `withdrawn` and forgets the message
// once nothing is granted any more; what both copy it revokes (parts.h) and ends as usual.
#pragma once
#include "shm/parts.h"
#include "shm/ring.h"
#include "shm/segment.h"
#include "shm/socket.h"

namespace dtrain::shm {

inline constexpr uint64_t data_capacity = 64 << 10;
inline constexpr uint64_t grants_capacity = 4 << 10;
inline constexpr uint64_t message_limit = uint64_t{1} << 48;
inline constexpr uint64_t eager_limit = 16 << 10;
inline constexpr uint64_t max_piece = 16 << 10; // small enough that copying in and out overlap
inline constexpr uint64_t min_piece = 4 << 10;  // unless it is the last
inline constexpr uint32_t max_offers = 4096;    // messages that are accepted and not yet through

// What the acceptor keeps for one connection when nobody waits for it: bytes, and
// Matcher::message_cost for each message.
inline constexpr uint64_t credit = 256 << 10;

inline constexpr uint64_t least_direct = 48 << 10; // below, its round trips and calls cost more

enum class FrameKind : uint16_t { eager = 1, offer, piece, copied, not_copied, withdrawn };

struct Frame {
    uint32_t bytes = 0; // that follow
    FrameKind kind = FrameKind::eager;
    uint16_t slot = 0; // of an offer and what follows it: the sender's number for it
    uint64_t tag = 0;
};
struct Offer { // follows the frame
    uint64_t length = 0;
    uint64_t address = 0; // of the message; 0: in pieces only
};
struct Grant {
    uint64_t slot = 0;
    uint64_t bytes = 0;   // to send: what fits where it goes; 0: nothing, it is through
    uint64_t address = 0; // where to, for who takes part in copying; 0: send pieces
    uint64_t reserved = 0;
};
static_assert(sizeof(Frame) == ring_unit && sizeof(Offer) == 16 && sizeof(Grant) == 32);

constexpr uint64_t frame_size(uint64_t bytes) { return sizeof(Frame) + round_up(bytes, ring_unit); }

// Set by a side before it sleeps, taken back by whoever wakes it.
struct Sleeper {
    alignas(128) std::atomic<uint32_t> asleep;
};

struct ChannelMemory {
    RingCounters data, grants;
    Sleeper connector, acceptor;
    alignas(128) Parts parts; // of the one message that is copied directly
    alignas(128) std::byte grants_bytes[grants_capacity];
    std::byte data_bytes[data_capacity];
};

// The part that both ends have.
class Channel {
  public:
    Channel() = default;
    void open(Segment &&segment, const Name &peer) {
        segment_ = std::move(segment);
        peer_ = peer;
    }
    ChannelMemory *memory() const { return reinterpret_cast<ChannelMemory *>(segment_.data()); }
    const Name &peer() const { return peer_; }

  private:
    Segment segment_;
    Name peer_{};
};

// After a publish(), which is sequentially consistent like the sleeper's own store: either this
// sees that the peer sleeps, or the peer sees what was published before it falls asleep.
inline void wake(Sleeper &peer, const Name &name, const Doorbell &bell) {
    if (peer.asleep.load() != 0 && peer.asleep.exchange(0) != 0) bell.ring(name);
}

} // namespace dtrain::shm
