// Who a device is: what its peers get as its address, and what tells whether they share a host.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace dtrain::shm {

using tp::Host;
using Status = dtrain_status_t;

// A device's random number; its sockets are named after it.
using Name = std::array<uint8_t, 16>;

// Grows with every change of what two processes share: sockets' messages, rings, windows.
inline constexpr uint32_t layout_version = 3;

struct Address {
    std::array<char, 4> magic{'d', 't', 's', 'h'};
    uint32_t version = layout_version;
    std::array<uint8_t, 16> boot_id{}; // of the running kernel
    uint64_t network = 0;              // inode of the network namespace, home of socket names
    uint32_t uid = 0;
    uint32_t pid = 0; // for messages; means nothing in another pid namespace
    Name name{};
};
static_assert(sizeof(Address) == 56);

// The own address, with a fresh name. DTRAIN_ERR_UNSUPPORTED without a /proc to ask.
Status make_address(const Host &host, Address &out);
// Checks an address that a peer gave; DTRAIN_ERR_UNSUPPORTED (and why) when it is out of reach.
Status check_reach(const Host &host, const Address &own, const void *address, size_t len,
                   Address &out);

} // namespace dtrain::shm
