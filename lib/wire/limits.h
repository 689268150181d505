// Limits on input from other processes, checked before anything is allocated or believed.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/clock.h"

#include <cstddef>
#include <cstdint>

namespace dtrain::wire {

inline constexpr uint32_t max_frame = 1 << 20;       // bytes of one control frame
inline constexpr size_t max_members = 4096;          // workers and servers of a job
inline constexpr uint8_t max_jobs = 8;               // of one context, at one time
inline constexpr size_t max_transports = 8;          // addresses per member
inline constexpr size_t max_transport_name = 32;     // bytes
inline constexpr size_t max_transport_address = 512; // bytes
inline constexpr size_t max_host = 128;              // bytes of a host identity
inline constexpr size_t max_address = 256;           // bytes of "host:port"
inline constexpr size_t max_text = 512;              // bytes of an error text
inline constexpr size_t max_relay = 64 << 10;        // bytes of a relayed message
inline constexpr size_t max_calls = 16;              // call records of one report
inline constexpr size_t max_replies = 16;            // about groups, told to a new coordinator
inline constexpr size_t max_moved = 1;               // the same of reforms
inline constexpr size_t max_newcomers = 1024;        // processes that wait to be taken in
inline constexpr size_t max_remarks = 64;            // texts of who came and who went
inline constexpr size_t hello_size = 128;            // bytes kept for an unauthenticated peer
inline constexpr size_t min_strangers = 64;          // connections not yet authenticated: so many,
                                                     // or as many as the job has members
inline constexpr size_t max_unseated = 256;          // authenticated, but not (yet) a member's
inline constexpr int64_t handshake_timeout = 3 * second;
inline constexpr int64_t seating_timeout = 5 * second; // from the handshake to Join or Rejoin
inline constexpr size_t max_queued = 8 << 20;          // bytes waiting for one connection

} // namespace dtrain::wire
