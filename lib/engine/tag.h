// The 64-bit tag of a message: which rank sends it, to which of the receiver's jobs, and for what.
// SPDX-License-Identifier: Apache-2.0
//
//   63      55 54 52 51      40 39    38 37                                         0
//   | group id | job |  source  |  class | by class:                                 |
//   |     9    |  3  |    12    |    2   | collective: call 12, fingerprint 14, message 12
//   |          |     |          |        | point to point: user's tag 32 (low bits)
//   |          |     |          |        | parameter server: see lib/ps
//
// A context numbers its jobs by itself (JobSlots), and the mesh puts the receiver's number into the
// tag; everybody else leaves it 0.
//
// The fingerprint covers all calls made on the communicator so far, so messages of different calls
// never match: a mismatch ends as a stall, which is then explained, never as a wrong sum.
#pragma once
#include <cstdint>

namespace dtrain::engine {

inline constexpr uint32_t group_id_bits = 9, job_bits = 3, source_bits = 12, call_bits = 12,
                          fingerprint_bits = 14, message_bits = 12, group_shift = 55;
inline constexpr uint32_t max_groups = 1u << group_id_bits; // per context, at one time
inline constexpr uint32_t max_jobs = 1u << job_bits;        // per context, at one time
inline constexpr uint32_t max_ranks = 1u << source_bits;    // of one communicator
// Of one pair in one collective, in each direction. The last number is that of the message with
// which ranks compare their results.
inline constexpr uint32_t max_messages = (1u << message_bits) - 1, comparing_message = max_messages;
inline constexpr uint64_t exact = ~uint64_t{0}; // mask for receiving from one source

enum class TagClass : uint64_t { collective = 0, point_to_point = 1, parameter_server = 2 };

constexpr uint64_t low(uint64_t value, uint32_t bits) {
    return value & ((uint64_t{1} << bits) - 1);
}

constexpr uint64_t make_tag(uint32_t group, uint32_t source, TagClass tag_class, uint64_t rest) {
    return low(group, group_id_bits) << group_shift | low(source, source_bits) << 40 |
           static_cast<uint64_t>(tag_class) << 38 | low(rest, 38);
}

constexpr uint64_t job_tag(uint32_t slot) { return low(slot, job_bits) << 52; }

constexpr uint64_t collective_bits(uint32_t call, uint32_t fingerprint) {
    return low(call, call_bits) << 26 | low(fingerprint, fingerprint_bits) << message_bits;
}

constexpr uint32_t tag_group(uint64_t tag) { return uint32_t(tag >> group_shift); }
constexpr uint32_t tag_source(uint64_t tag) { return uint32_t(low(tag >> 40, source_bits)); }

inline constexpr uint64_t source_mask = low(~uint64_t{0}, source_bits) << 40;
inline constexpr uint64_t job_mask = job_tag(~uint32_t{0});
inline constexpr uint64_t group_mask = low(~uint64_t{0}, group_id_bits) << group_shift;

} // namespace dtrain::engine
