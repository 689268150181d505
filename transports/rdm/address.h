// Where a device is, as it travels to its peers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/hello.h"
#include "rdm/wire.h"

namespace dtrain::rdm {

using tp::DeviceId;

struct Address { // on the wire as it is, integers little-endian
    static constexpr size_t wire_length = 440;

    uint16_t version = 0;
    uint16_t has_secret = 0;
    uint16_t fabric_len = 0;
    uint16_t within_machine = 0; // nobody on another machine can link to it
    char kind[16] = {};          // what devices must have in common: "ofi net", "ucx"
    DeviceId id{};
    uint64_t machine = 0; // whose process numbers pid is one of
    uint32_t pid = 0;
    uint32_t zero2 = 0;
    uint8_t fabric[max_fabric_address] = {}; // what Wire::address() wrote
    uint64_t checksum = 0;                   // of everything before
    std::array<uint8_t, 24> mac{};           // of everything before, under the secret; else zero

    // Fills in version, has_secret, checksum and mac.
    void seal(const tp::Host &host);
    // False when the bytes (which come from a peer) are no address.
    bool decode(const void *bytes, size_t len);
    // Whether the peer has our secret, or we both have none.
    tp::Verdict judge(const tp::Host &host) const;
};
static_assert(sizeof(Address) == Address::wire_length);

} // namespace dtrain::rdm
