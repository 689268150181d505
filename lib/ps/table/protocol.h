// The protocol between clients and servers of tables: fixed 64-byte headers, little-endian.
// SPDX-License-Identifier: Apache-2.0
//
// A request is a header and a payload. The payload of CREATE is described in table_wire.h; PUSH,
// PUSH_PULL and SET have values; SET_STATE has state; kinds about rows have keys, and then the rows
// if the kind carries them. An answer is a header and a payload. If a kind that receives succeeded,
// the payload is values, state, or rows in the order of the keys. The answer to CREATE has the
// states of the table's function. If a request about files or a function failed, the payload is an
// error text.
//
// The requests of one worker for one table carry consecutive sequence numbers (CREATE: 0), with at
// most request_window of them between the oldest unanswered one and the newest; a retry keeps its
// number.
#pragma once
#include "base/status.h"

#include <bit>
#include <cstdint>
#include <iterator>

namespace dtrain::ps {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

// The first number in the answer to a create request: rows may lack room; the values are those of
// the job's last generation.
inline constexpr uint64_t created_limited = 1, created_inherited = 2;

inline constexpr uint32_t protocol_magic = 0x53505444; // "DTPS"
inline constexpr uint8_t protocol_version = 19;
inline constexpr uint32_t request_window = 32;
inline constexpr uint64_t chunk_bytes = 256 * 1024; // limit for values in a request or answer
inline constexpr uint64_t max_row_bytes = chunk_bytes - sizeof(uint64_t); // leaves room for a key
inline constexpr uint32_t max_name = 255;
inline constexpr uint32_t max_told = 400;     // bytes of an error text
inline constexpr uint32_t max_tables = 65536; // tables created during one job

// Numbers on the wire: never reuse one.
enum class RequestKind : uint8_t {
    create = 1,
    destroy = 2,
    push = 3,
    pull = 4,
    push_pull = 5, // not under BSP: a client sends push, clock and pull instead
    set = 6,
    clock = 7,
    cancel = 8, // settles the request with the same sequence number, whether it was done or not
    pull_state = 9,
    set_state = 10,
    set_rate = 11,
    push_rows = 12,
    pull_rows = 13,
    push_pull_rows = 14, // not under BSP, like push_pull
    set_rows = 15,
    erase_rows = 16,
    count_rows = 17, // the count is numbers[0] of the answer
    pull_state_rows = 18,
    set_state_rows = 19,
    save = 20,    // the server writes its part of the table to a checkpoint
    restore = 21, // it reads and checks its part, and keeps that apart until adopt or discard
    set_ready = 22,
    wait_ready = 23,
    set_mode = 24, // argument: mode_bits(); asks for a change, or only whether it is possible
    adopt = 25,    // the data that the worker's restore has read becomes the table
    discard = 26,  // that data is dropped, and earlier restores of the worker are canceled
    // For a push of several requests that could be refused: keep_rows reserves room for its rows
    // before the first request, and end_keeping follows the last one. argument: the worker's number
    // for the push.
    keep_rows = 27,
    end_keeping = 28,
    set_updates = 29
};
inline constexpr uint8_t last_request_kind = 29;
inline constexpr uint32_t most_kept = 4 * request_window; // pushes of a worker with kept room

struct Trait {
    enum : uint8_t {
        sends = 1,    // the request has a payload
        receives = 2, // the answer has a payload
        ranged = 4,   // about a range or rows; payloads are values or state
        pushes = 8,
        state = 16,   // about a state array
        rows = 32,    // about a sparse table
        carries = 64, // rows follow the keys
        files = 128   // about checkpoints
    };
};
// Indexed by RequestKind.
inline constexpr uint8_t kind_traits[] = {
    0,
    Trait::sends,
    0,
    Trait::ranged | Trait::sends | Trait::pushes,
    Trait::ranged | Trait::receives,
    Trait::ranged | Trait::sends | Trait::receives | Trait::pushes,
    Trait::ranged | Trait::sends,
    0,
    0,
    Trait::ranged | Trait::receives | Trait::state,
    Trait::ranged | Trait::sends | Trait::state,
    0,
    Trait::ranged | Trait::sends | Trait::pushes | Trait::rows | Trait::carries,
    Trait::ranged | Trait::sends | Trait::receives | Trait::rows,
    Trait::ranged | Trait::sends | Trait::receives | Trait::pushes | Trait::rows | Trait::carries,
    Trait::ranged | Trait::sends | Trait::rows | Trait::carries,
    Trait::ranged | Trait::sends | Trait::rows,
    Trait::rows,
    Trait::ranged | Trait::sends | Trait::receives | Trait::state | Trait::rows,
    Trait::ranged | Trait::sends | Trait::state | Trait::rows | Trait::carries,
    Trait::files,
    Trait::files,
    0,
    0,
    0,
    0,
    0,
    Trait::ranged | Trait::sends | Trait::rows,
    0,
    0};
static_assert(std::size(kind_traits) == last_request_kind + 1);
constexpr bool has_trait(RequestKind known, uint8_t trait) {
    return (kind_traits[static_cast<uint8_t>(known)] & trait) != 0;
}

// Whether the answer may be an error text, about a file or from a function.
constexpr bool may_be_told(RequestKind known) {
    if (has_trait(known, Trait::files) || known == RequestKind::create) return true;
    return has_trait(known, Trait::pushes | Trait::receives) && !has_trait(known, Trait::state);
}

enum RequestFlags : uint16_t {
    begins_push = 1,   // the first chunk of a push for this server: it counts as one update
    counted_push = 2,  // cancel: the canceled request was a push
    packed_answer = 4, // the answer is expected in a pack (pack.h)
    weighted = 8,      // clock: the worker has given a weight in this clock
    without_lost = 16, // set_mode: all remaining workers ask, and lost workers no longer count
    gives_up = 32      // destroy: the worker could not open the table
};
inline constexpr uint16_t known_request_flags =
    begins_push | counted_push | packed_answer | weighted | without_lost | gives_up;

struct RequestHeader {
    uint32_t magic = protocol_magic;
    uint8_t version = protocol_version;
    RequestKind kind = RequestKind::create;
    uint16_t flags = 0; // RequestFlags
    uint32_t table = 0; // the table's number in the order of creation, < max_tables
    uint32_t worker = 0;
    uint64_t sequence = 0;
    // Dense table: elements of the whole table, also for state per row. Sparse table: 0, and the
    // number of rows. Files: the checkpoint's id, and 0.
    uint64_t first = 0, count = 0;
    uint64_t clock = 0; // the worker's clock when the operation was called
    // Clock: the number of pushes of that clock that this server must have seen. set_mode: the
    // number of the change.
    uint32_t pushes = 0;
    uint32_t partition = 0; // version of the partition that the client used
    // State: the array's index; set_rate: the bits of the rate; set_updates: their number; files:
    // the step; pushes: the bits of the weight, or 0; clock: the bits of the worker's weight in
    // that clock; pulls: the updates to wait for.
    uint64_t argument = 0;
};
static_assert(sizeof(RequestHeader) == 64);

// Why a request was not done. Numbers on the wire.
enum class Reason : uint16_t {
    none = 0,
    resend = 1, // not a failure: the request came too early, send it again now
    bad_header = 2,
    wrong_worker = 3,
    unknown_table = 4,
    bad_range = 5,
    bad_size = 6,
    wrong_partition = 7,
    forgotten = 8,
    window = 9,
    clock_passed = 10,
    clock_ahead = 11,
    clock_changed = 12,
    worker_lost = 13,
    memory_limit = 14,
    no_memory = 15,
    mismatch = 16,
    bad_parameter = 17,
    too_many_tables = 18,
    not_in_mode = 19,
    canceled = 20,
    unknown_state = 21,
    bad_rate = 22,
    bad_steps = 23,
    wrong_kind = 24,
    wrong_server = 25,
    rows_limit = 26,
    table_limit = 27,
    told = 28, // the payload is an error text; the first number is the negated status
    not_at_clock = 29,
    bad_version = 30, // of the protocol
    stale = 31,       // not a failure: the step had ended without this request
    quorum_lost = 32,
    bad_weight = 33,
    version_ahead = 34,
    mode_not_agreed = 35,
    peer_limit = 36,
    restoring = 37,
    not_read = 38,
    not_finite = 39,
    modes_differ = 40, // the numbers are the mode_bits() of two workers
    // Not an answer, which follows: the request was repeated while it waits for another worker.
    waits = 41,
    no_right = 42, // the numbers are the missing rights (access.h), and the worker
    gave_up = 43,  // as worker_lost: the worker has no such table, though others have
    device = 44    // of the server has failed, and with it the table's values there
};
inline constexpr uint16_t last_reason = 44;
constexpr bool is_failure(Reason reason) {
    return reason != Reason::none && reason != Reason::resend && reason != Reason::stale &&
           reason != Reason::waits;
}

struct ResponseHeader {
    uint32_t magic = protocol_magic;
    uint8_t version = protocol_version;
    RequestKind kind = RequestKind::create; // the request's kind
    Reason reason = Reason::none;
    uint32_t table = 0;
    uint32_t server = 0;
    uint64_t sequence = 0;
    uint64_t count = 0;         // elements or rows that follow; create, told: bytes
    uint64_t table_version = 0; // updates applied on this server
    // Failure: numbers for the reason's text. Success: numbers[0] is the number of rows
    // (count_rows), 1 if the change was made (set_mode), or 1 if new rows may lack room (create);
    // numbers[1] is the server's clock.
    uint64_t numbers[2] = {0, 0};
    uint32_t partition = 0;
    uint32_t reserved = 0;
};
static_assert(sizeof(ResponseHeader) == 64);

// The rights (access.h) that a request needs.
uint8_t rights_for(RequestKind known);
// Checks a request as far as possible without the table; none: it is valid. worker: the sender
// according to the transport.
Reason check_request(const RequestHeader &header, uint64_t payload_bytes, uint32_t worker);
// Whether this is a well-formed answer of that server to the request, of this version. All versions
// of the protocol have the magic, version, table and sequence number at the same places.
bool check_response(const ResponseHeader &header, const RequestHeader &request, uint32_t server);

Status status_of(Reason reason);
Status told_status(uint64_t number); // of Reason::told; number: the first one of the answer
// Writes the text for a known reason, such as "worker 3 was lost": at most len bytes, with the NUL.
// asked: the worker that the answer is for.
void describe(Reason reason, const uint64_t numbers[2], uint32_t asked, char *text, size_t len);
// fail() with the status and text of the reason.
Status fail_for(Reason reason, uint64_t number0, uint64_t number1);

} // namespace dtrain::ps
