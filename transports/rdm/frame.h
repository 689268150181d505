// The head of every packet and bulk message, and the limits of the protocol.
//
// Until both sides trust each other (handshakes.h), each with a body:
//   hello     Introduction.
//   reply     Introduction, proof.
//   proof     proof.
//   verdict   the answer to a hello or a proof.
//   confirmation  nothing: the answer to an accepting verdict.
// Then:
//   eager     tag, length; then length bytes, or as many as fit in the packet: the rest follows in
//             parts, before the next eager or bulk. Uses length + Matcher::message_cost of the
//             window.
//   part      more bytes of the eager message that has begun.
//   bulk      tag, length, id: a bulk message, whose number at its sender is id.
//   withdraw  id: the sender wants the memory of that message back; a receiver that has not begun
//             to fetch it drops it. length 1: it has it back; a receiver that fetches it breaks
//             off.
//   credit    only the credit that every head may carry.
//   arrived   tag: the immediate of a put that has arrived.
//   ping      nothing: finds out whether the network still has a route to the peer.
//   bye       the sender closes, or (WireAttr::closes_quietly) answers a bye; nothing follows. Also
//             before the confirmation: the sender gives the attempt up. length 1, on a protected
//             connection: the sender got what the receiver did not send.
//   record    on a protected connection, the only kind: a record, which has one of the others in it
//             (sealed.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rdm/wire.h"

#include <cstdint>
#include <cstring>
#include <endian.h>

namespace dtrain::rdm {

enum class Kind : uint8_t {
    hello = 1,
    reply,
    proof,
    verdict,
    eager,
    bulk,
    withdraw,
    credit,
    arrived,
    ping,
    bye,
    part,
    confirmation,
    record
};

inline constexpr uint64_t window = 256 << 10; // bytes of eager messages that a receiver may keep

struct Head {
    static constexpr size_t wire_length = 48;

    Kind kind{};
    uint32_t credit = 0;   // bytes of window that are returned
    uint32_t to = 0;       // the receiver's number for the channel,
    uint64_t token = 0;    // and a number that only its peer knows; 0, 0 in a hello
    uint32_t sequence = 0; // number of this head on the channel
    uint32_t id = 0;
    uint64_t tag = 0;
    uint64_t length = 0;

    void encode(uint8_t out[wire_length]) const {
        const Layout layout{
            uint8_t(kind),  {},           htole32(credit), htole32(to), htole32(sequence),
            htole64(token), htole64(tag), htole64(length), htole32(id), 0};
        memcpy(out, &layout, sizeof layout);
    }
    void decode(const uint8_t in[wire_length]) {
        Layout layout;
        memcpy(&layout, in, sizeof layout);
        *this = {Kind(layout.kind),     le32toh(layout.credit),   le32toh(layout.to),
                 le64toh(layout.token), le32toh(layout.sequence), le32toh(layout.id),
                 le64toh(layout.tag),   le64toh(layout.length)};
    }

  private:
    struct Layout {
        uint8_t kind;
        uint8_t zero[3];
        uint32_t credit, to, sequence;
        uint64_t token, tag, length;
        uint32_t id, zero2;
    };
    static_assert(sizeof(Layout) == wire_length);
};

} // namespace dtrain::rdm
