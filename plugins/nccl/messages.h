// What two sides tell each other: the handle that listen() writes and NCCL carries to the other
// rank, and the messages hello (of connect()), welcome (the answer of accept()), ready (the first
// on the new connection; after it neither side needs the other one's calls to be connected) and
// closed (the last in each direction). All of it comes from a peer, so lengths are checked. Pure.
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
    uint32_t number = 0;       // of the receiving end
    std::string text;          // of the refusal
    std::string who;
    Bytes data; // address of the receiver's device

    Bytes encode() const;
    bool decode(const uint8_t *bytes, size_t length);
};

// Both ends of a connection are numbered, by their devices. Ready tells the connector's number;
// closed tells nothing.
Bytes encode_ready(uint32_t number);
bool decode_ready(const Bytes &bytes, size_t length, uint32_t &number);
inline constexpr size_t ready_bytes = 5;

// Tags. On the control device: the kind of a message, and the number of the one it is for. On the
// other devices: the number of the end that receives, which has 31 bits, and NCCL's tag; or the
// kind.
inline uint64_t hello_tag(uint32_t listener) { return uint64_t{1} << 32 | listener; }
inline uint64_t welcome_tag(uint32_t attempt) { return uint64_t{2} << 32 | attempt; }
inline uint64_t data_tag(uint32_t end, int tag) { return uint64_t{end} << 32 | uint32_t(tag); }
inline uint64_t ready_tag(uint32_t end) { return uint64_t{2} << 62 | end; }
inline uint64_t closed_tag(uint32_t end) { return uint64_t{3} << 62 | end; }
inline constexpr uint64_t data_mask = uint64_t{UINT32_MAX} << 32; // all of NCCL's tags

} // namespace dtrain::nccl
