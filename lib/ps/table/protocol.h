// What clients and servers of tables say to each other: fixed 64-byte headers, little-endian.
// SPDX-License-Identifier: Apache-2.0
//
// A request is its header and a payload (CREATE: table_wire.h; PUSH, PUSH_PULL, SET:
// values; SET_STATE: state; kinds of rows: keys, then, for kinds that carry them, their rows); an
// answer is its header and, for kinds that receive and succeeded, values, state, or rows in the
// order of the keys; of CREATE, the states of the table's function; or, where a request about files
// or a function failed, a text. Requests of one worker for one table carry consecutive sequence
// numbers (CREATE: 0) with at most request_window of them between the oldest unanswered and the
// newest; a retry keeps its number.
#pragma once
#include "base/status.h"

#include <bit>
#include <cstdint>
#include <iterator>

namespace dtrain::ps {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

inline constexpr uint32_t protocol_magic = 0x53505444; // "DTPS"
inline constexpr uint8_t protocol_version = 14;
inline constexpr uint32_t request_window = 32;
inline constexpr uint64_t chunk_bytes = 256 * 1024; // values in one request or answer
inline constexpr uint64_t max_row_bytes = chunk_bytes - sizeof(uint64_t); // a key goes with it
inline constexpr uint32_t max_name = 255;
inline constexpr uint32_t max_told = 400;     // bytes of a text that tells why
inline constexpr uint32_t max_tables = 65536; // ever made in one job

// Numbers on the wire: never used twice.
enum class RequestKind : uint8_t {
    create = 1,
    destroy = 2,
    push = 3,
    pull = 4,
    push_pull = 5, // not under BSP, where it is push, clock, pull
    set = 6,
    clock = 7,
    cancel = 8, // settles the request with the same sequence number, done or not
    pull_state = 9,
    set_state = 10,
    set_rate = 11,
    push_rows = 12,
    pull_rows = 13,
    push_pull_rows = 14, // not under BSP, as push_pull
    set_rows = 15,
    erase_rows = 16,
    count_rows = 17, // numbers[0] of the answer
    pull_state_rows = 18,
    set_state_rows = 19,
    save = 20,    // its part of the table, to a checkpoint
    restore = 21, // reads and checks its part of one, and keeps it apart until one of the last two
    set_ready = 22,
    wait_ready = 23,
    set_mode = 24, // as argument: mode_bits(); only asked whether it could, or when all have asked
    adopt = 25,    // what the worker's restore has read becomes the table's
    discard = 26,  // it is dropped, with what the worker's earlier restores would still read
    // Of a push of several requests, before the first of them, where it could be refused: room for
    // its rows; and after the last that it is over. As argument: the push, as the worker numbers
    // it.
    keep_rows = 27,
    end_keeping = 28
};
inline constexpr uint8_t last_request_kind = 28;
inline constexpr uint32_t most_kept = 4 * request_window; // pushes of a worker that keep room

struct Trait {
    enum : uint8_t {
        sends = 1,    // has a payload
        receives = 2, // its answer has one
        ranged = 4,   // is about a range, or rows; its payloads are values or state
        pushes = 8,
        state = 16,   // about a state array
        rows = 32,    // of a sparse table
        carries = 64, // rows come after the keys
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
    0};
static_assert(std::size(kind_traits) == last_request_kind + 1);
constexpr bool has_trait(RequestKind known, uint8_t trait) {
    return (kind_traits[static_cast<uint8_t>(known)] & trait) != 0;
}

// Its failure may be told by a text: a file's, or a function's.
constexpr bool may_be_told(RequestKind known) {
    if (has_trait(known, Trait::files) || known == RequestKind::create) return true;
    return has_trait(known, Trait::pushes | Trait::receives) && !has_trait(known, Trait::state);
}

enum RequestFlags : uint16_t {
    begins_push = 1,   // the first chunk of a push for this server: it counts as one update
    counted_push = 2,  // cancel: the request that it settles was a push
    packed_answer = 4, // the answer is expected in a pack (pack.h)
    weighted = 8,      // clock: the worker has said a weight in it
    without_lost = 16  // set_mode: all that are left ask, and nobody is to wait for the others
};
inline constexpr uint16_t known_request_flags =
    begins_push | counted_push | packed_answer | weighted | without_lost;

struct RequestHeader {
    uint32_t magic = protocol_magic;
    uint8_t version = protocol_version;
    RequestKind kind = RequestKind::create;
    uint16_t flags = 0; // RequestFlags
    uint32_t table = 0; // its number in the order of creation, < max_tables
    uint32_t worker = 0;
    uint64_t sequence = 0;
    uint64_t first = 0, count = 0; // elements of the whole table, also for state of rows; of a
                                   // sparse one 0 and rows; files: the checkpoint's id, and 0
    uint64_t clock = 0;            // the worker's, when the operation was called
    // Clock: pushes of that clock that this server must have seen. set_mode: the number of the
    // change.
    uint32_t pushes = 0;
    uint32_t partition = 0; // version of the partition that the client used
    // State: which array; set_rate: the bits of the rate; files: the step; pushes: the bits of the
    // weight, or 0; clock: of what the worker counts there; pulls: updates to wait for.
    uint64_t argument = 0;
};
static_assert(sizeof(RequestHeader) == 64);

// Why a request was not done. Numbers on the wire.
enum class Reason : uint16_t {
    none = 0,
    resend = 1, // not a failure: held back until now, send it (again)
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
    told = 28, // a text says it; the first number is the status, negated
    not_at_clock = 29,
    bad_version = 30, // of the protocol
    stale = 31,       // not a failure: the step was over without it
    quorum_lost = 32,
    bad_weight = 33,
    version_ahead = 34,
    mode_not_agreed = 35,
    peer_limit = 36,
    restoring = 37,
    not_read = 38,
    not_finite = 39
};
inline constexpr uint16_t last_reason = 39;
constexpr bool is_failure(Reason reason) {
    return reason != Reason::none && reason != Reason::resend && reason != Reason::stale;
}

struct ResponseHeader {
    uint32_t magic = protocol_magic;
    uint8_t version = protocol_version;
    RequestKind kind = RequestKind::create; // of the request
    Reason reason = Reason::none;
    uint32_t table = 0;
    uint32_t server = 0;
    uint64_t sequence = 0;
    uint64_t count = 0;         // elements or rows that follow; create, told: bytes
    uint64_t table_version = 0; // updates applied here
    // For the text of the reason. Without a failure: count_rows: rows, set_mode: 1 where the change
    // is made, create: 1 where new rows may lack room; and the server's clock.
    uint64_t numbers[2] = {0, 0};
    uint32_t partition = 0;
    uint32_t reserved = 0;
};
static_assert(sizeof(ResponseHeader) == 64);

// What can be said without knowing the table; none: fine. The worker is whom the message came from.
Reason check_request(const RequestHeader &header, uint64_t payload_bytes, uint32_t worker);
// What all versions of the protocol have in common: magic and version, and in requests and answers
// where their table and sequence number are.
// Whether this is a well-formed answer of that server to the request, of this version.
bool check_response(const ResponseHeader &header, const RequestHeader &request, uint32_t server);

Status status_of(Reason reason);
Status told_status(uint64_t number); // of Reason::told
// "worker 3 was lost", for a known reason; a NUL-terminated text of at most len bytes. asked: the
// worker that the answer is for.
void describe(Reason reason, const uint64_t numbers[2], uint32_t asked, char *text, size_t len);
// fail() with its status and text.
Status fail_for(Reason reason, uint64_t number0, uint64_t number1);

} // namespace dtrain::ps
