// The messages that two devices exchange over their socket. Each message is sent whole.
// SPDX-License-Identifier: Apache-2.0
//
//   connector            acceptor
//   Hello           ->               who I am
//                   <-   Challenge   I know the job's secret
//   Proof + memory  ->               so do I; here is the memory for our rings (channel.h)
//                   <-   Ready
// and afterwards, any number of times:
//   WindowAsk       ->
//                   <-   WindowGive + memory
#pragma once
#include "shm/address.h"

#include <cstring>

namespace dtrain::shm {

enum class Kind : uint32_t { hello = 1, challenge, proof, ready, window_ask, window_give };

using Nonce = std::array<uint8_t, 32>;
using Mac = std::array<uint8_t, 32>;

// The address at which a peer can read this nonce.
inline uint64_t address_of(const Nonce &nonce) { return reinterpret_cast<uintptr_t>(&nonce); }

struct Hello {
    Kind kind = Kind::hello;
    uint32_t version = layout_version;
    Nonce nonce{};
    Address from;
    uint64_t nonce_address =
        0; // of the same bytes in this process; 0: its memory must not be accessed
};
struct Challenge {
    Kind kind = Kind::challenge;
    uint32_t reserved = 0;
    Nonce nonce{};
    Mac mac{};
    uint64_t nonce_address = 0; // as in Hello
};
struct Proof {
    Kind kind = Kind::proof;
    uint32_t reserved = 0;
    Mac mac{};
};
struct Ready {
    Kind kind = Kind::ready;
    uint32_t in_reach = 0; // 1: this process can access the connector's memory
};
struct WindowAsk {
    Kind kind = Kind::window_ask;
    uint32_t members = 0;
    Name id{};
    uint64_t bytes = 0;
};
struct WindowGive {
    Kind kind = Kind::window_give;
    int32_t status = 0; // memory is passed only with DTRAIN_OK
    Name id{};
};
static_assert(sizeof(Hello) == 104 && sizeof(Challenge) == 80 && sizeof(Proof) == 40 &&
              sizeof(Ready) == 8 && sizeof(WindowAsk) == 32 && sizeof(WindowGive) == 24);

inline constexpr size_t socket_message_limit = 104;

// True if the received bytes are a T.
template <class T> bool parse(const std::byte *message, size_t len, T &out) {
    if (len != sizeof out) return false;
    std::memcpy(&out, message, sizeof out);
    return out.kind == T{}.kind;
}

} // namespace dtrain::shm
