// The packets that the wires of two devices exchange, in addition to those of the protocol above,
// whose first byte is below 0x80. Integers are little-endian.
//
//   announce  bulk; then the protocol's head: a bulk message waits.
//   grant     bulk, transfer, and targets: write it there, to all of them in turn; the last write
//             carries the transfer as its immediate. No target: nothing is wanted, it is over.
//   failed    transfer: it will not be written.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/iov.h"
#include "ofi/memory.h"

#include <cstddef>
#include <cstdint>

namespace dtrain::ofi {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the packets below go out as they are");

enum class PacketKind : uint8_t { announce = 0x80, grant, failed };

struct BulkName { // the name of a bulk message, which only its receiver knows
    uint32_t id = 0, zero = 0;
    uint64_t token = 0;
};
struct Announce {
    PacketKind kind = PacketKind::announce;
    uint8_t zero[7] = {};
    BulkName bulk;
};
struct Grant {
    PacketKind kind = PacketKind::grant;
    uint8_t count = 0; // number of targets
    uint8_t zero[2] = {};
    uint32_t transfer = 0;
    BulkName bulk;
    Target targets[tp::max_iov];

    size_t length() const { return offsetof(Grant, targets) + count * sizeof(Target); }
};
struct Failed {
    PacketKind kind = PacketKind::failed;
    uint8_t zero[3] = {};
    uint32_t transfer = 0;
};

} // namespace dtrain::ofi
