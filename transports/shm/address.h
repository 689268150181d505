// The identity of a device: its address for peers, from which they can tell whether they share a
// host.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace dtrain::shm {

using tp::Host;
using Status = dtrain_status_t;

// A device's random number; the names of its sockets contain it.
using Name = std::array<uint8_t, 16>;

// To be increased with every change of what two processes share: socket messages, rings, windows.
inline constexpr uint32_t layout_version = 3;

struct Address {
    std::array<char, 4> magic{'d', 't', 's', 'h'};
    uint32_t version = layout_version;
    std::array<uint8_t, 16> boot_id{}; // of the running kernel
    // Inode of the network namespace, in which socket names are valid.
    uint64_t network = 0;
    uint32_t uid = 0;
    uint32_t pid = 0; // for error texts; means nothing in another pid namespace
    Name name{};
};
static_assert(sizeof(Address) == 56);

// Makes this device's address, with a new name. DTRAIN_ERR_UNSUPPORTED if /proc is missing.
Status make_address(const Host &host, Address &out);
// Checks an address that a peer gave; DTRAIN_ERR_UNSUPPORTED (with the reason) if it cannot be
// reached.
Status check_reach(const Host &host, const Address &own, const void *address, size_t len,
                   Address &out);

} // namespace dtrain::shm
