// Numbers that both sides of this wire use.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::ucx {

// Ids of active messages.
inline constexpr unsigned packet_id = 1; // bytes: head and payload
inline constexpr unsigned bulk_id = 2;   // header: head; by rendezvous

inline constexpr uint32_t rkey_len = 128; // bytes of an rkey as it is sent

} // namespace dtrain::ucx
