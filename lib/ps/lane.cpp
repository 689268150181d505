// SPDX-License-Identifier: Apache-2.0
#include "ps/lane.h"

#include "ps/client_table.h"
#include "ps/item.h"
#include "ps/row_batch.h"
#include "ps/table_wire.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace dtrain::ps {
namespace {

constexpr uint32_t longest_backoff = 3; // doublings of the retry time

bool pushes(RequestKind kind) { return has_trait(kind, Trait::pushes); }
bool has_range(RequestKind kind) { return has_trait(kind, Trait::ranged); }

} // namespace

Lane::Lane(ClientTable &table, uint32_t server, LaneContext &context)
    : table_(table), server_(server), context_(context) {}

// Elements in one request: whole items; or rows.
uint64_t Lane::chunk_of(const Piece &piece) const {
    if (has_trait(piece.kind, Trait::rows)) return piece.transfer->rows->rows_per_request();
    Item item = item_of(table_.params, piece.kind, piece.argument);
    return std::max<uint64_t>(context_.chunk / item.bytes, 1) * item.elements;
}

uint64_t Lane::requests_of(const Piece &piece) const {
    if (!has_range(piece.kind)) return 1;
    return chunks_of(piece.range.count, chunk_of(piece));
}

void Lane::add(const Piece &piece) {
    if (closed_) return;
    if (piece.transfer != nullptr) piece.transfer->requests += requests_of(piece);
    if (pushes(piece.kind)) pushes_ += static_cast<uint32_t>(requests_of(piece));
    queue_.push_back(piece);
    count_busy();
}

void Lane::count_busy() {
    if (busy_ == !idle()) return;
    busy_ = !busy_;
    if (busy_)
        context_.busy++;
    else
        context_.busy--;
}

void Lane::add_clock(Piece piece) {
    piece.pushes = pushes_;
    add(piece);
    pushes_ = 0;
}

bool Lane::may_leave(const Piece &piece) const {
    bool bsp_clock = piece.kind == RequestKind::clock && table_.params.consistency == DTRAIN_BSP;
    return next_ - oldest_ < request_window && !(bsp_clock && pulls_ > 0);
}

void Lane::pump(int64_t now) {
    while (!queue_.empty() && may_leave(queue_.front())) {
        Piece &piece = queue_.front();
        Slot &sent = launch(piece);
        if (!has_range(piece.kind) || piece.range.count == 0) queue_.pop_front();
        send(sent, now);
        if (sent.attempts == 0) break; // the wire is busy: on_timer() goes on
    }
}

Lane::Slot &Lane::launch(Piece &piece) {
    Slot &s = slot(next_);
    s = {};
    s.lane = this;
    s.transfer = piece.transfer;
    s.state = State::active;
    s.pulls = has_trait(piece.kind, Trait::receives);
    s.header.kind = piece.kind;
    s.header.table = table_.id;
    s.header.worker = context_.worker;
    s.header.sequence = next_++;
    s.header.clock = piece.clock;
    s.header.pushes = piece.pushes;
    s.header.flags = piece.flags;
    s.header.argument = piece.argument;
    s.header.partition = table_.partition.version();
    pulls_ += s.pulls;
    if (piece.kind == RequestKind::create) {
        s.payload = table_.create_payload.data();
        s.payload_bytes = table_.create_payload.size();
    }
    if (!has_range(piece.kind)) {
        if (may_be_told(piece.kind)) make_room_for_text(s);
        return s;
    }

    Range chunk = {piece.range.first, std::min(piece.range.count, chunk_of(piece))};
    s.header.count = chunk.count;
    if (pushes(piece.kind) && piece.begins) s.header.flags = begins_push;
    if (has_trait(piece.kind, Trait::rows))
        attach_rows(chunk, s);
    else
        attach(chunk, s);
    if (has_function(table_.params) && may_be_told(piece.kind)) make_room_for_text(s);
    piece.range = {chunk.end(), piece.range.count - chunk.count};
    piece.begins = false;
    return s;
}

// For a text, which no buffer of the caller's is for.
void Lane::make_room_for_text(Slot &s) {
    s.into = s.answer;
    s.answer_bytes = std::max<uint64_t>(s.answer_bytes, max_told);
    s.room = std::make_unique<char[]>(s.answer_bytes);
    s.answer = s.room.get();
}

void Lane::attach(const Range &chunk, Slot &s) const {
    const Transfer &transfer = *s.transfer;
    Item item = item_of(table_.params, s.header.kind, s.header.argument);
    uint64_t offset = item.bytes_of(chunk.first - transfer.range.first);
    s.header.first = chunk.first;
    if (has_trait(s.header.kind, Trait::sends)) {
        s.payload = static_cast<const char *>(transfer.send) + offset;
        s.payload_bytes = item.bytes_of(chunk.count);
    }
    if (s.pulls) {
        s.answer = static_cast<char *>(transfer.receive) + offset;
        s.answer_bytes = item.bytes_of(chunk.count);
    }
}

void Lane::attach_rows(const Range &rows, Slot &s) {
    const RowBatch &batch = *s.transfer->rows;
    std::vector<char> &scratch = scratch_[s.header.sequence % request_window];
    scratch.resize(
        std::max<size_t>(scratch.size(), batch.scratch_bytes(s.header.kind, rows.count)));
    s.rows = rows;
    batch.attach(rows, s, scratch.data());
}

void Lane::send(Slot &s, int64_t now) {
    if (context_.wire.send(server_, s) != DTRAIN_OK) return repeat_at(s, now);
    s.sends += !s.copied;
    counters_.sent += s.payload_bytes;
    if (s.attempts == 0) s.sent_at = now;
    counters_.repeats += s.attempts > 0;
    repeat_at(s, now + (context_.retry_ns << std::min(s.attempts, longest_backoff)));
    ++s.attempts;
}

void Lane::repeat_at(Slot &s, int64_t time) {
    s.retry_at = time;
    next_timer_ = std::min(next_timer_, time);
    context_.next_timer = std::min(context_.next_timer, time);
}

void Lane::on_timer(int64_t now) {
    next_timer_ = INT64_MAX;
    for (uint64_t i = oldest_; i < next_; ++i) {
        Slot &s = slot(i);
        if (s.state != State::active) continue;
        if (s.retry_at > now)
            repeat_at(s, s.retry_at);
        else if (s.sends > 0)
            repeat_at(s, now + context_.retry_ns); // the wire still has it
        else
            send(s, now);
    }
    pump(now);
}

Outgoing *Lane::copied_request(uint64_t sequence) {
    Slot &s = slot(sequence);
    const bool waits = s.state == State::active && s.copied && s.header.sequence == sequence;
    return waits && sequence >= oldest_ && sequence < next_ ? &s : nullptr;
}

bool Lane::on_response(Outgoing &request, const ResponseHeader &header, uint64_t payload_bytes,
                       int64_t now) {
    auto &s = static_cast<Slot &>(request);
    bool due = s.state == State::active && header.sequence == s.header.sequence &&
               header.kind == s.header.kind;
    if (!due) return false;
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
    end(s, now);
    return true;
}

void Lane::on_fragment(Outgoing &request, uint64_t bytes, int64_t now) {
    auto &s = static_cast<Slot &>(request);
    char why[96];
    std::snprintf(why, sizeof why, "truncated answer: %llu bytes, not even a header",
                  static_cast<unsigned long long>(bytes));
    report_failure(s, DTRAIN_ERR_CORRUPT, why);
    end(s, now);
}

void Lane::end(Slot &s, int64_t now) {
    s.state = State::answered;
    if (s.sends == 0) settle(s);
    pump(now);
}

void Lane::count(const Slot &s, const ResponseHeader &header, uint64_t payload_bytes, int64_t now) {
    ++counters_.requests;
    counters_.elements += s.header.count;
    counters_.received += payload_bytes;
    counters_.latency.add(uint64_t(std::max<int64_t>(now - s.sent_at, 0)));
    if (header.reason == Reason::stale) ++counters_.stale;
    if (header.reason != Reason::none) {
        counters_.refused += is_failure(header.reason);
        return;
    }
    const bool own = !collects(table_.params); // the push itself is an update
    const uint64_t seen = pulled_ + own;
    if ((s.header.flags & begins_push) != 0)
        counters_.staleness.add(header.table_version - std::min(header.table_version, seen));
    if (s.pulls) pulled_ = header.table_version;
}

void Lane::report(const Slot &s, const ResponseHeader &header, uint64_t payload_bytes) {
    char why[max_told + 1] = "malformed answer";
    if (header.magic == protocol_magic && header.version != protocol_version) {
        const uint64_t versions[] = {protocol_version, header.version};
        describe(Reason::bad_version, versions, why, sizeof why);
        return report_failure(s, DTRAIN_ERR_VERSION, why);
    }
    if (!check_response(header, s.header, server_))
        return report_failure(s, DTRAIN_ERR_CORRUPT, why);
    const bool told = header.reason == Reason::told;
    const bool created = s.header.kind == RequestKind::create;
    if (told && s.room == nullptr) return report_failure(s, DTRAIN_ERR_CORRUPT, why);
    uint64_t due =
        told || created
            ? header.count
            : item_of(table_.params, s.header.kind, s.header.argument).bytes_of(header.count);
    if (payload_bytes != due) {
        std::snprintf(why, sizeof why, "%s answer: %llu bytes of values, %llu are due",
                      payload_bytes < due ? "truncated" : "oversized",
                      static_cast<unsigned long long>(payload_bytes),
                      static_cast<unsigned long long>(due));
        return report_failure(s, DTRAIN_ERR_CORRUPT, why);
    }
    if (told) {
        std::snprintf(why, sizeof why, "%.*s", int(header.count), s.room.get());
        return report_failure(s, told_status(header.numbers[0]), why);
    }
    if (is_failure(header.reason)) {
        describe(header.reason, header.numbers, why, sizeof why);
        return report_failure(s, status_of(header.reason), why);
    }
    if (created && !learn_states(s.room.get(), payload_bytes))
        return report_failure(s, DTRAIN_ERR_MISMATCH,
                              "its function keeps other state than that of another server");
    if (table_.params.consistency == DTRAIN_QUORUM) {
        told_ = std::max(told_, header.numbers[1]);
        if (s.pulls) table_.catch_up();
    }
    if (s.transfer == nullptr) return;
    if (s.into != nullptr) std::memcpy(s.into, s.room.get(), payload_bytes);
    s.transfer->version = std::min(s.transfer->version, header.table_version);
    if (s.pulls && s.transfer->rows != nullptr) s.transfer->rows->deliver(s.rows, s.answer);
    if (s.header.kind == RequestKind::count_rows) s.transfer->total += header.numbers[0];
}

// All servers must say the same.
bool Lane::learn_states(const void *payload, uint64_t bytes) {
    std::vector<FunctionState> states;
    const TableParams &params = table_.params;
    if (!decode_states(payload, bytes, states) || (bytes > 0 && !has_function(params)) ||
        !may_keep(params, states))
        return false;
    if (std::exchange(table_.described, true)) return states == params.states;
    table_.params.states = std::move(states);
    return true;
}

void Lane::report_failure(const Slot &s, Status status, const char *why) {
    if (s.transfer == nullptr) return;
    char text[error_text_size];
    std::snprintf(text, sizeof text, "table '%s': server %u: %s", table_.name.c_str(), server_,
                  why);
    fail_transfer(*s.transfer, status, static_cast<int32_t>(server_), text);
}

void Lane::on_sent(Outgoing &request) {
    auto &s = static_cast<Slot &>(request);
    --s.sends;
    if (s.state == State::answered && s.sends == 0) settle(s);
}

void Lane::settle(Slot &s) {
    Transfer *transfer = s.transfer;
    context_.wire.settled(server_, s);
    pulls_ -= s.pulls;
    s.state = State::free;
    s.transfer = nullptr;
    while (oldest_ < next_ && slot(oldest_).state == State::free) ++oldest_;
    count_busy();
    if (transfer != nullptr) settle_requests(*transfer, 1);
}

bool Lane::carries(const Transfer &transfer) const {
    auto its = [&](const auto &part) { return part.transfer == &transfer; };
    return std::any_of(queue_.begin(), queue_.end(), its) ||
           std::any_of(slots_.begin(), slots_.end(), its);
}

// The queued rest of a push will never be sent: its clock must not wait for it.
void Lane::forget_pushes(const Piece &piece) {
    if (!pushes(piece.kind)) return;
    auto ends_it = [&](const Piece &other) {
        return other.kind == RequestKind::clock && other.clock == piece.clock;
    };
    auto clock = std::find_if(queue_.begin(), queue_.end(), ends_it);
    uint32_t &count = clock == queue_.end() ? pushes_ : clock->pushes;
    count -= static_cast<uint32_t>(requests_of(piece));
}

uint64_t Lane::abandon(Transfer &transfer) {
    uint64_t settled = 0;
    for (Piece &piece : queue_) {
        if (piece.transfer != &transfer) continue;
        settled += requests_of(piece);
        forget_pushes(piece);
        if (!has_range(piece.kind))
            piece.transfer = nullptr; // needs nothing of the caller, goes on
    }
    std::erase_if(queue_, [&](const Piece &piece) { return piece.transfer == &transfer; });
    count_busy();
    for (Slot &s : slots_) {
        if (s.transfer != &transfer || s.state != State::active) continue;
        if (has_range(s.header.kind)) {
            withdraw(s);
        } else {
            s.transfer = nullptr;
            ++settled;
        }
    }
    return settled;
}

void Lane::withdraw(Slot &s) {
    s.state = State::withdrawing;
    context_.wire.withdraw(server_, s);
}

void Lane::on_withdrawn(Outgoing &request, int64_t now) {
    auto &s = static_cast<Slot &>(request);
    s.sends = 0;
    if (closed_) return settle(s);
    Transfer *transfer = s.transfer;
    RequestHeader &header = s.header;
    header.flags = pushes(header.kind) ? counted_push : 0;
    header.kind = RequestKind::cancel;
    header.first = header.count = header.argument = 0;
    s.payload = s.answer = nullptr;
    s.payload_bytes = s.answer_bytes = 0;
    s.transfer = nullptr;
    s.attempts = 0;
    s.state = State::active;
    send(s, now);
    if (transfer != nullptr) settle_requests(*transfer, 1);
}

void Lane::close() {
    closed_ = true;
    queue_.clear();
    count_busy();
    for (Slot &s : slots_)
        if (s.state == State::active || s.state == State::answered) withdraw(s);
}

} // namespace dtrain::ps
