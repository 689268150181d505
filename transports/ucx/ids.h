// Numbers that both sides of this wire know.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::ucx {

// Of active messages.
inline constexpr unsigned packet_id = 1; // bytes: head and payload
inline constexpr unsigned bulk_id = 2;   // header: head; by rendezvous

inline constexpr uint32_t rkey_len = 128; // bytes of an rkey as it travels

} // namespace dtrain::ucx
