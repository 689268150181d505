// The memory of one connection, and how both of its ends use it.
// SPDX-License-Identifier: Apache-2.0
//
// A connection carries messages in one direction, from the connector to the acceptor, as frames in
// the ring `data`. Messages up to eager_limit follow their header directly, as long as the acceptor
// has promised to keep them (credit). Others are offered; the acceptor answers through the ring
// `grants` when a receive waits for them, and their bytes follow in pieces, with other frames in
// between.
//
// If each side can access the other's memory, long messages in one piece do not use the ring: the
// offer and the grant tell where the message is and where it goes, and both sides copy parts of it.
// The connector reports when it finds nothing more to copy; the acceptor then sends a last, empty
// grant: the message is complete. If a copy fails on either side, because the peer is gone or the
// kernel cannot access its memory, the acceptor asks for pieces, and the connection shows whether
// the peer is gone.
//
// Either side may give up a message at any time and get its memory back. An acceptor that does so
// continues as before and drops what arrives. A connector sends `withdrawn` and forgets the message
// once nothing is granted any more; a message that both sides copy it revokes (revocation.h) and
// ends as usual.
#pragma once
#include "common/parts.h"
#include "shm/revocation.h"
#include "shm/ring.h"
#include "shm/segment.h"
#include "shm/socket.h"

namespace dtrain::shm {

inline constexpr uint64_t data_capacity = 64 << 10;
inline constexpr uint64_t grants_capacity = 4 << 10;
inline constexpr uint64_t message_limit = uint64_t{1} << 48;
inline constexpr uint64_t eager_limit = 16 << 10;
inline constexpr uint64_t max_piece = 16 << 10; // small enough that copying in and out overlap
inline constexpr uint64_t min_piece = 4 << 10;  // except for the last piece
inline constexpr uint32_t max_offers = 4096;    // messages that are accepted and not yet complete

// What the acceptor keeps for one connection while no receive waits for it: bytes, plus
// Matcher::message_cost for each message.
inline constexpr uint64_t credit = 256 << 10;

// Bytes; for less, its round trips and system calls cost more. Far: the cores of both processes are
// far apart (common/shared_copy.h).
inline constexpr uint64_t least_direct = 48 << 10, least_direct_far = 2 << 20;
inline constexpr uint32_t direct_between_rings = 64; // messages

enum class FrameKind : uint16_t { eager = 1, offer, piece, copied, not_copied, withdrawn };

struct Frame {
    uint32_t bytes = 0; // bytes that follow
    FrameKind kind = FrameKind::eager;
    uint16_t slot = 0; // in an offer and what follows it: the sender's number for it
    uint64_t tag = 0;
};
struct Offer { // follows the frame
    uint64_t length = 0;
    uint64_t address = 0; // of the message; 0: in pieces only
};
struct Grant {
    uint64_t slot = 0;
    // Bytes to send: as many as fit in the buffer; 0: none, the message is complete.
    uint64_t bytes = 0;
    uint64_t address = 0; // destination, if both sides copy; 0: send pieces
    uint64_t reserved = 0;
};
static_assert(sizeof(Frame) == ring_unit && sizeof(Offer) == 16 && sizeof(Grant) == 32);

constexpr uint64_t frame_size(uint64_t bytes) { return sizeof(Frame) + round_up(bytes, ring_unit); }

// Set by a side before it sleeps, cleared by the side that wakes it.
struct Sleeper {
    alignas(128) std::atomic<uint32_t> asleep;
};

struct ChannelMemory {
    RingCounters data, grants;
    Sleeper connector, acceptor;
    alignas(128) tp::Parts parts; // of the message that is being copied directly
    Revocation revocation;        // of such a message
    alignas(128) std::byte grants_bytes[grants_capacity];
    std::byte data_bytes[data_capacity];
};

// The part that both ends have in common.
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

// To be called after publish(), which is sequentially consistent like the sleeper's own store:
// either this sees that the peer sleeps, or the peer sees what was published before it falls
// asleep.
inline void wake(Sleeper &peer, const Name &name, const Doorbell &bell) {
    if (peer.asleep.load() != 0 && peer.asleep.exchange(0) != 0) bell.ring(name);
}

} // namespace dtrain::shm
