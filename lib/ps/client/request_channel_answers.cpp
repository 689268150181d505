// How a channel handles the answers to its requests.
// SPDX-License-Identifier: Apache-2.0
#include "ps/client/client_table.h"
#include "ps/client/request_channel.h"
#include "ps/client/row_batch.h"
#include "ps/table/narrow.h"
#include "ps/table/table_wire.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace dtrain::ps {

Outgoing *RequestChannel::packed_request(uint64_t sequence) {
    Slot &s = slot(sequence);
    const bool packed = (s.header.flags & packed_answer) != 0;
    const bool waits = s.state == State::active && packed && s.header.sequence == sequence;
    return waits && sequence >= oldest_ && sequence < next_ ? &s : nullptr;
}

bool RequestChannel::on_response(Outgoing &request, const ResponseHeader &header,
                                 uint64_t payload_bytes, int64_t now) {
    auto &s = static_cast<Slot &>(request);
    bool due = s.state == State::active && header.sequence == s.header.sequence &&
               header.kind == s.header.kind;
    if (!due) return false;
    if (header.reason == Reason::waits) {
        if (s.transfer != nullptr && check_response(header, s.header, server_))
            s.transfer->awaited = {.told_ns = now,
                                   .server = int32_t(server_),
                                   .numbers = {header.numbers[0], header.numbers[1]}};
        return false; // the answer is still to come
    }
    if (header.reason == Reason::resend) {
        ++counters_.dropped;
        s.attempts = 0;
        if (s.sends == 0)
            send(s, now);
        else
            repeat_at(s, now);
        return true;
    }
    count(s, header, payload_bytes, now);
    report(s, header, payload_bytes);
    if (header.kind == RequestKind::keep_rows) note_room(s, now);
    end(s, now);
    return true;
}

void RequestChannel::on_fragment(Outgoing &request, uint64_t bytes, int64_t now) {
    auto &s = static_cast<Slot &>(request);
    char why[96];
    std::snprintf(why, sizeof why, "truncated answer: %llu bytes, less than a header",
                  static_cast<unsigned long long>(bytes));
    report_failure(s, DTRAIN_ERR_CORRUPT, why);
    if (s.header.kind == RequestKind::keep_rows) note_room(s, now);
    end(s, now);
}

void RequestChannel::end(Slot &s, int64_t now) {
    s.state = State::answered;
    if (s.sends == 0) settle(s);
    go_on(now);
}

void RequestChannel::count(const Slot &s, const ResponseHeader &header, uint64_t payload_bytes,
                           int64_t now) {
    ++counters_.requests;
    counters_.elements += s.header.count;
    counters_.received += payload_bytes;
    counters_.latency.add(uint64_t(std::max<int64_t>(now - s.sent_at, 0)));
    if (header.reason == Reason::stale) ++counters_.stale;
    if (header.reason != Reason::none) {
        counters_.refused += is_failure(header.reason);
        return;
    }
    if (has_trait(s.header.kind, Trait::pushes)) counters_.not_finite += header.numbers[0];
    const bool own = !collects(table_.params); // this push counts as an update itself
    const uint64_t seen = pulled_ + own;
    if ((s.header.flags & begins_push) != 0)
        counters_.staleness.add(header.table_version - std::min(header.table_version, seen));
    if (s.pulls) pulled_ = header.table_version;
}

// The expected payload: values or a text.
uint64_t RequestChannel::due(const Slot &s, const ResponseHeader &header) {
    const bool in_bytes = header.reason == Reason::told || s.header.kind == RequestKind::create;
    return in_bytes ? header.count : header.count > 0 ? s.due : 0;
}

bool RequestChannel::is_fine(const Slot &s, const ResponseHeader &header,
                             uint64_t payload_bytes) const {
    return check_response(header, s.header, server_) && payload_bytes == due(s, header) &&
           !is_failure(header.reason);
}

void RequestChannel::refuse(const Slot &s, const ResponseHeader &header, uint64_t payload_bytes) {
    char why[max_told + 1];
    if (header.magic == protocol_magic && header.version != protocol_version) {
        const uint64_t versions[] = {protocol_version, header.version};
        describe(Reason::bad_version, versions, context_.worker, why, sizeof why);
        return report_failure(s, DTRAIN_ERR_VERSION, why);
    }
    const bool told = header.reason == Reason::told;
    if (!check_response(header, s.header, server_) || (told && s.room == nullptr))
        return report_failure(s, DTRAIN_ERR_CORRUPT, "malformed answer");
    if (const uint64_t due_bytes = due(s, header); payload_bytes != due_bytes) {
        std::snprintf(why, sizeof why, "%s answer: %llu bytes of values, %llu expected",
                      payload_bytes < due_bytes ? "truncated" : "oversized",
                      static_cast<unsigned long long>(payload_bytes),
                      static_cast<unsigned long long>(due_bytes));
        return report_failure(s, DTRAIN_ERR_CORRUPT, why);
    }
    if (told) {
        std::snprintf(why, sizeof why, "%.*s", int(header.count), s.room.get());
        return report_failure(s, told_status(header.numbers[0]), why);
    }
    describe(header.reason, header.numbers, context_.worker, why, sizeof why);
    report_failure(s, status_of(header.reason), why, header.reason == Reason::device);
}

void RequestChannel::report(const Slot &s, const ResponseHeader &header, uint64_t payload_bytes) {
    if (!is_fine(s, header, payload_bytes)) return refuse(s, header, payload_bytes);
    const bool created = s.header.kind == RequestKind::create;
    if (created && !learn_states(s.room.get(), payload_bytes))
        return report_failure(s, DTRAIN_ERR_MISMATCH,
                              "its function keeps other state than the function of another server");
    if (created) limited_ = (header.numbers[0] & created_limited) != 0;
    if (created) inherited_ = (header.numbers[0] & created_inherited) != 0;
    if (table_.params.consistency == DTRAIN_QUORUM) {
        told_ = std::max(told_, header.numbers[1]);
        if (s.pulls) table_.catch_up();
    }
    if (s.transfer == nullptr || s.header.kind == RequestKind::keep_rows) return;
    if (s.into != nullptr) std::memcpy(s.into, s.room.get(), payload_bytes);
    s.transfer->version = std::min(s.transfer->version, header.table_version);
    if (s.pulls) deliver(s);
    const RequestKind kind = s.header.kind;
    if (kind == RequestKind::count_rows || kind == RequestKind::set_mode)
        s.transfer->total += header.numbers[0];
}

void RequestChannel::deliver(const Slot &s) const {
    const Transfer &transfer = *s.transfer;
    if (transfer.rows != nullptr) return transfer.rows->deliver(s.rows, s.answer);
    if (!travels_narrow(table_.params, s.header.kind)) return;
    auto *to = static_cast<float *>(transfer.receive) + (s.header.first - transfer.range.first);
    read_row(to, table_.params.wire_dtype, s.answer, s.header.count);
}

// All servers must report the same states.
bool RequestChannel::learn_states(const void *payload, uint64_t bytes) {
    std::vector<FunctionState> states;
    const TableParams &params = table_.params;
    if (!decode_states(payload, bytes, states) || (bytes > 0 && !has_function(params)) ||
        !may_keep(params, states))
        return false;
    if (std::exchange(table_.described, true)) return states == params.states;
    table_.params.states = std::move(states);
    return true;
}

void RequestChannel::report_failure(const Slot &s, Status status, const char *why, bool lost) {
    if (s.transfer == nullptr) return;
    char text[error_text_size];
    std::snprintf(text, sizeof text, "table \"%s\": server %u: %s", table_.name.c_str(), server_,
                  why);
    fail_transfer(*s.transfer, status, static_cast<int32_t>(server_), text);
    const bool keeps = s.header.kind == RequestKind::keep_rows;
    if (!keeps && !has_trait(s.header.kind, Trait::pushes)) return;
    const auto &rows = s.transfer->rows;
    const bool all = keeps || (rows != nullptr && s.rows.count == rows->part(server_).count);
    refusals_.push_back({s.transfer, lost  ? Refused::lost
                                     : all ? Refused::whole
                                           : Refused::in_part});
    if (!keeps) return;
    for (const auto &channel : table_.channels) channel->drop_push(*s.transfer);
}

} // namespace dtrain::ps
