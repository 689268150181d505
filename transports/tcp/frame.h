// The header of every frame on an established connection, and its limits.
//
//   eager     tag, length; then length bytes. Uses length + Matcher::message_cost of the window.
//   announce  tag, length, id: a message waits at its sender, whose number for it is id.
//   grant     id, peer_id, length: send that many bytes of message id, for which the receiver's
//             number is peer_id. length 0: nothing is wanted, the send is over.
//   data      id (the grant's peer_id), length; then length bytes, the next ones of that message.
//   withdraw  id: the sender withdraws the message that it announced as id.
//   credit    only the credit that every header may carry.
//   corrupt   on a protected connection: the sender got what the receiver did not send; the end.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstring>
#include <endian.h>

namespace dtrain::tcp {

enum class FrameKind : uint8_t { eager = 1, announce, grant, data, withdraw, credit, corrupt };

inline constexpr uint64_t eager_limit = 256 << 10;
inline constexpr uint64_t data_limit = 1 << 20; // of a data frame; a small message may wait for one
inline constexpr uint64_t message_limit = uint64_t{1} << 40;
inline constexpr uint64_t window = 2 << 20; // bytes of eager messages that a receiver may keep

struct Frame {
    static constexpr size_t wire_length = 32;

    FrameKind kind{};
    uint32_t credit = 0; // bytes of window that are returned
    uint64_t tag = 0;
    uint64_t length = 0;
    uint32_t id = 0;
    uint32_t peer_id = 0;

    void encode(uint8_t out[wire_length]) const {
        const Wire wire{uint8_t(kind),   {},          htole32(credit), htole64(tag),
                        htole64(length), htole32(id), htole32(peer_id)};
        memcpy(out, &wire, sizeof wire);
    }
    void decode(const uint8_t in[wire_length]) {
        Wire wire;
        memcpy(&wire, in, sizeof wire);
        *this = {FrameKind(wire.kind), le32toh(wire.credit), le64toh(wire.tag),
                 le64toh(wire.length), le32toh(wire.id),     le32toh(wire.peer_id)};
    }

  private:
    struct Wire {
        uint8_t kind;
        uint8_t zero[3];
        uint32_t credit;
        uint64_t tag, length;
        uint32_t id, peer_id;
    };
    static_assert(sizeof(Wire) == wire_length);
};

} // namespace dtrain::tcp
