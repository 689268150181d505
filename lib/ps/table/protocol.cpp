// Checks headers, and has the texts of all reasons.
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/protocol.h"

#include "ps/table/access.h"
#include "ps/table/table_params.h"

#include <algorithm>
#include <cstdio>

namespace dtrain::ps {
namespace {

struct ReasonInfo {
    Status status;
    const char *text; // printf format: the two numbers of the answer, then the requesting worker
};

// Indexed by Reason.
constexpr ReasonInfo reasons[] = {
    {DTRAIN_OK, "done"},
    {DTRAIN_IN_PROGRESS, "held back"},
    {DTRAIN_ERR_CORRUPT, "malformed request header"},
    {DTRAIN_ERR_INVALID, "the request names worker %llu but came from worker %llu"},
    {DTRAIN_ERR_NOT_FOUND, "the server has no such table (number %llu)"},
    {DTRAIN_ERR_INVALID, "the range of %2$llu elements from element %1$llu on is not in the "
                         "server's part of the table"},
    {DTRAIN_ERR_INVALID, "the payload has %llu bytes, but %llu are expected"},
    {DTRAIN_ERR_VERSION, "the client's partition has version %llu, the server's has version %llu"},
    {DTRAIN_ERR_STATE, "request %llu is too old to tell whether it was done (newest: %llu)"},
    {DTRAIN_ERR_LIMIT, "request %llu is too far ahead of the newest one seen, %llu"},
    {DTRAIN_ERR_STATE, "clock %llu is over; the server is at clock %llu"},
    {DTRAIN_ERR_LIMIT, "clock %llu is too far ahead; the worker has finished %llu clocks"},
    {DTRAIN_ERR_STATE, "clock %llu has already ended, with a number of pushes other than %llu"},
    {DTRAIN_ERR_PEER, "worker %llu was lost at clock %llu, which others wait for"},
    {DTRAIN_ERR_LIMIT, "memory limit of the server (ps.memory): %llu bytes are needed, %llu left"},
    {DTRAIN_ERR_NO_MEMORY, "the server is out of memory (%llu bytes needed)"},
    {DTRAIN_ERR_MISMATCH, ""}, // describe()
    {DTRAIN_ERR_INVALID, ""},  // describe()
    {DTRAIN_ERR_LIMIT, "the table would have number %llu, but a job can create only %llu tables"},
    {DTRAIN_ERR_UNSUPPORTED, "a fused push and pull is not supported under BSP"},
    {DTRAIN_ERR_CANCELED, "canceled"},
    {DTRAIN_ERR_INVALID, "the table's rule has no state array %llu"},
    {DTRAIN_ERR_INVALID, "this learning rate is not valid for the table's rule (rule %llu)"},
    {DTRAIN_ERR_INVALID, "the update count %llu is not valid; it can be at most 2^53"},
    {DTRAIN_ERR_INVALID, "ranges are for dense tables, rows for sparse ones"},
    {DTRAIN_ERR_INVALID, "key %llu belongs to server %llu"},
    {DTRAIN_ERR_LIMIT, "memory limit of the server (ps.memory): the table's rows take %llu bytes, "
                       "and the %llu bytes left are not enough for new rows"},
    {DTRAIN_ERR_LIMIT,
     "limit of the table (max_bytes): its rows on this server take %llu bytes, and the %llu bytes "
     "left are not enough for new rows"},
    {DTRAIN_ERR_INTERNAL, "the server reported the error as a text"}, // told_status()
    {DTRAIN_ERR_STATE, "a worker has already pushed in clock %llu or a later one; call "
                       "dtrain_barrier on all workers before and after the save"},
    {DTRAIN_ERR_VERSION, "the worker's libdtrain speaks version %llu of the table protocol, the "
                         "server's version %llu; use the same release on both"},
    {DTRAIN_OK, "the step was over"},
    {DTRAIN_ERR_PEER, "worker %llu and perhaps others were lost: fewer workers remain than the "
                      "quorum of %llu"},
    {DTRAIN_ERR_INVALID, "the weight is not valid for this table (weights are for BSP and QUORUM "
                         "tables of floating-point numbers whose aggregate is AVG)"},
    {DTRAIN_ERR_STATE, "a pull in this clock sees version %llu, not %llu or a later one"},
    {DTRAIN_ERR_STATE, "worker %llu has not heard whether all workers agree, so the mode stays as "
                       "it is"},
    {DTRAIN_ERR_LIMIT, "limit of the memory that one worker may take up on a server "
                       "(ps.peer_memory): the answers and requests of worker %3$u take %1$llu "
                       "bytes there, of at most %2$llu; keep fewer operations in flight, or raise "
                       "the option"},
    {DTRAIN_ERR_BUSY, "worker %llu is restoring the table; when that has ended, try again"},
    {DTRAIN_ERR_STATE, "the server holds no restored data to take over, or the restore was "
                       "abandoned"},
    {DTRAIN_ERR_INVALID, "what worker %2$llu pushed to element, or key, %1$llu has a NaN or an "
                         "infinity, which the table refuses (not_finite); nothing of this part of "
                         "the push was applied"},
    {DTRAIN_ERR_MISMATCH, ""}, // describe()
    {DTRAIN_IN_PROGRESS, "waits for worker %llu, which has ended %llu clocks"},
    {DTRAIN_ERR_AUTH, ""}, // describe()
    {DTRAIN_ERR_PEER,
     "worker %llu gave up creating the table (its call of table_create failed), and "
     "others wait for its clock %llu"},
    {DTRAIN_ERR_DEVICE, "the accelerator that holds the table's values there has failed (the "
                        "server's log says how), so they are lost; restore a checkpoint, or "
                        "create the table anew"},
};
static_assert(std::size(reasons) == last_reason + 1);

bool has_argument(RequestKind kind) {
    return has_trait(kind, Trait::state | Trait::files | Trait::pushes) ||
           kind == RequestKind::set_rate || kind == RequestKind::set_mode ||
           kind == RequestKind::clock || kind == RequestKind::pull ||
           kind == RequestKind::pull_rows || kind == RequestKind::keep_rows ||
           kind == RequestKind::end_keeping || kind == RequestKind::set_updates;
}

bool has_number(RequestKind kind) {
    return kind == RequestKind::clock || kind == RequestKind::set_mode;
}

} // namespace

uint8_t rights_for(RequestKind known) {
    switch (known) {
    case RequestKind::push:
    case RequestKind::set:
    case RequestKind::set_state:
    case RequestKind::set_rate:
    case RequestKind::push_rows:
    case RequestKind::set_rows:
    case RequestKind::erase_rows:
    case RequestKind::set_state_rows:
    case RequestKind::set_ready:
    case RequestKind::keep_rows:
    case RequestKind::set_updates: return Right::push;
    case RequestKind::pull:
    case RequestKind::pull_state:
    case RequestKind::pull_rows:
    case RequestKind::count_rows:
    case RequestKind::pull_state_rows: return Right::pull;
    case RequestKind::push_pull:
    case RequestKind::push_pull_rows: return Right::push | Right::pull;
    case RequestKind::save:
    case RequestKind::restore:
    case RequestKind::adopt: return Right::checkpoint;
    default: return 0; // what every worker of a table must be able to do
    }
}

Reason check_request(const RequestHeader &header, uint64_t payload_bytes, uint32_t worker) {
    if (header.magic != protocol_magic) return Reason::bad_header;
    if (header.version != protocol_version) return Reason::bad_version;
    auto kind = static_cast<uint8_t>(header.kind);
    if (kind < 1 || kind > last_request_kind) return Reason::bad_header;
    bool ranged = has_trait(header.kind, Trait::ranged);
    bool may_begin = has_trait(header.kind, Trait::files) ||
                     (ranged && !has_trait(header.kind, Trait::rows)); // `first` may be above 0
    bool well_formed = (has_argument(header.kind) || header.argument == 0) &&
                       (header.flags & ~known_request_flags) == 0 &&
                       ranged == (header.count != 0) && (may_begin || header.first == 0) &&
                       header.count <= UINT64_MAX - header.first &&
                       (has_number(header.kind) || header.pushes == 0) &&
                       (header.kind == RequestKind::create) == (header.sequence == 0);
    if (!well_formed) return Reason::bad_header;
    if (header.worker != worker) return Reason::wrong_worker;
    if (has_trait(header.kind, Trait::sends) != (payload_bytes != 0)) return Reason::bad_size;
    return Reason::none;
}

bool check_response(const ResponseHeader &header, const RequestHeader &request, uint32_t server) {
    bool pulled = header.reason == Reason::none && has_trait(request.kind, Trait::receives);
    const bool in_bytes = header.reason == Reason::told ||
                          (header.reason == Reason::none && request.kind == RequestKind::create);
    if (in_bytes && (!may_be_told(request.kind) || header.count > max_told)) return false;
    return header.magic == protocol_magic && header.version == protocol_version &&
           header.kind == request.kind && static_cast<uint16_t>(header.reason) <= last_reason &&
           header.table == request.table && header.server == server &&
           header.sequence == request.sequence &&
           (in_bytes || header.count == (pulled ? request.count : 0)) && header.reserved == 0;
}

Status told_status(uint64_t number) {
    bool failure = number > 0 && number <= 99; // the range of the status codes in dtrain.h
    return failure ? -static_cast<Status>(number) : DTRAIN_ERR_CORRUPT;
}

Status status_of(Reason reason) {
    auto index = static_cast<uint16_t>(reason);
    return index <= last_reason ? reasons[index].status : DTRAIN_ERR_CORRUPT;
}

void describe(Reason reason, const uint64_t numbers[2], uint32_t asked, char *text, size_t len) {
    auto a = static_cast<unsigned long long>(numbers[0]);
    auto b = static_cast<unsigned long long>(numbers[1]);
    auto index = std::min(static_cast<uint16_t>(reason), last_reason);
    if (reason == Reason::mismatch)
        std::snprintf(text, len, "%s differs from what worker %llu gave", field_name(a), b);
    else if (reason == Reason::bad_parameter)
        std::snprintf(text, len, "parameter %s is not valid", field_name(a));
    else if (reason == Reason::modes_differ)
        std::snprintf(text, len, "workers ask for different modes: %s, and %s",
                      mode_text(a).c_str(), mode_text(b).c_str());
    else if (reason == Reason::no_right)
        std::snprintf(text, len,
                      "worker %llu may not %s it: its tokens (option ps.token.file) do not grant "
                      "that, by the server's option ps.access",
                      b, right_name(a));
    else
        std::snprintf(text, len, reasons[index].text, a, b, asked);
}

Status fail_for(Reason reason, uint64_t number0, uint64_t number1) {
    const uint64_t numbers[] = {number0, number1};
    char text[max_told + 1];
    describe(reason, numbers, 0, text, sizeof text);
    return fail(status_of(reason), "%s", text);
}

} // namespace dtrain::ps
