// What two sides tell each other while they connect: the handle that listen() writes and NCCL
// carries to the other rank, and the messages hello (of connect()) and welcome (the answer of
// accept()). All of it comes from a peer, so lengths are checked. Pure: no network.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::nccl {

using Bytes = std::vector<uint8_t>;

inline constexpr size_t most_message_bytes = 4096; // of a hello or a welcome

// Leads to a listener. The addresses of some devices are longer than NCCL's handle, so this one has
// the address of the process's control device, which is always tcp, without its zero bytes.
struct Handle {
    Bytes address;         // of the control device
    uint32_t listener = 0; // its number there
    uint32_t attempt = 0;  // written by connect(), for its next calls; 0: the first call

    // INVALID: the address has too many bytes that are not zero.
    Status encode(void *handle) const;
    Status decode(const void *handle);
    static void set_attempt(void *handle, uint32_t attempt);
};

struct Hello {
    uint32_t attempt = 0;  // where the welcome goes
    std::string transport; // "ofi"
    std::string who;       // "host:pid", for texts
    Bytes control;         // address of the sender's control device
    Bytes data;            // address of its device

    Bytes encode() const;
    bool decode(const uint8_t *bytes, size_t length);
};

struct Welcome {
    Status status = DTRAIN_OK; // why the connection is refused
    uint32_t comm = 0;         // its number at the receiver's device
    std::string text;          // of the refusal
    std::string who;
    Bytes data; // address of the receiver's device

    Bytes encode() const;
    bool decode(const uint8_t *bytes, size_t length);
};

// Tags. On the control device: the kind of a message, and the number of the one it is for. On the
// other devices: the number of a connection, which has 31 bits, and NCCL's tag.
inline uint64_t hello_tag(uint32_t listener) { return uint64_t{1} << 32 | listener; }
inline uint64_t welcome_tag(uint32_t attempt) { return uint64_t{2} << 32 | attempt; }
inline uint64_t data_tag(uint32_t comm, int tag) { return uint64_t{comm} << 32 | uint32_t(tag); }
inline uint64_t ready_tag(uint32_t comm) { return uint64_t{1} << 63 | comm; }
inline constexpr uint64_t data_mask = uint64_t{UINT32_MAX} << 32; // all tags of a connection

} // namespace dtrain::nccl
