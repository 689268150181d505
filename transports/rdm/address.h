// The address of a device, in the form that is sent to its peers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/hello.h"
#include "rdm/wire.h"

namespace dtrain::rdm {

using tp::DeviceId;
using tp::Verdict;

struct Address { // sent as it is; integers little-endian
    static constexpr size_t wire_length = 440;

    uint16_t version = 0;
    uint16_t has_secret = 0;
    uint16_t fabric_len = 0;
    uint16_t within_machine = 0; // no device on another machine can link to it
    char kind[16] = {};          // what two devices must have in common: "ofi net", "ucx"
    DeviceId id{};
    uint64_t machine = 0; // the machine (pid namespace) in which pid is valid
    uint32_t pid = 0;
    uint32_t zero2 = 0;
    uint8_t fabric[max_fabric_address] = {}; // written by Wire::address()
    uint64_t checksum = 0;                   // over everything before
    // Over everything before, under the secret; zero without one.
    std::array<uint8_t, 24> mac{};

    // Fills in version, has_secret, checksum and mac.
    void seal(const tp::Host &host);
    // False if the bytes (which come from a peer) are not an address.
    bool decode(const void *bytes, size_t len);
    // Checks whether the peer has the same secret, or neither side has one.
    tp::Verdict judge(const tp::Host &host) const;
};
static_assert(sizeof(Address) == Address::wire_length);

} // namespace dtrain::rdm
