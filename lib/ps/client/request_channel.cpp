// Queues the requests of a channel, sends and repeats them, and settles them.
// SPDX-License-Identifier: Apache-2.0
#include "ps/client/request_channel.h"

#include "ps/client/client_table.h"
#include "ps/client/row_batch.h"
#include "ps/table/narrow.h"

#include <algorithm>
#include <iterator>
#include <new>

namespace dtrain::ps {
namespace {

constexpr uint32_t longest_backoff = 3;        // doublings of the retry time
constexpr size_t most_asking = request_window; // pushes that may ask for room ahead of their turn

bool pushes(RequestKind kind) { return has_trait(kind, Trait::pushes); }
bool has_range(RequestKind kind) { return has_trait(kind, Trait::ranged); }

} // namespace

RequestChannel::RequestChannel(ClientTable &table, uint32_t server, ChannelContext &context)
    : table_(table), server_(server), context_(context) {}

RequestChannel::~RequestChannel() { context_.scheduler.forget(server_, *this); }

uint64_t RequestChannel::requests_of(const Piece &piece) const {
    if (!has_range(piece.kind)) return 1;
    return chunks_of(piece.range.count, chunk_of(piece));
}

void RequestChannel::add(const Piece &piece) {
    if (closed_) return;
    if (piece.waits) return add_keeping(piece);
    queue(piece);
}

void RequestChannel::queue(const Piece &piece) {
    if (changing_ != UINT64_MAX && piece.kind == RequestKind::destroy) queue_.clear();
    const uint64_t requests = requests_of(piece);
    if (piece.transfer != nullptr) piece.transfer->requests += requests;
    if (pushes(piece.kind)) pushes_ += static_cast<uint32_t>(requests);
    if (piece.keeps != 0) keeping_[piece.keeps] += requests;
    const auto added = queue_.insert(place_of(piece), piece);
    if (added != queue_.begin() && piece.transfer != nullptr &&
        std::prev(added)->transfer == piece.transfer && std::prev(added)->kind == piece.kind)
        added->begins = false; // all ranges of one push count as one update
    count_busy();
}

// The place of the piece in the queue. It never moves across a clock, and never moves at all if
// sums depend on the order.
std::deque<Piece>::const_iterator RequestChannel::place_of(const Piece &piece) const {
    auto place = queue_.end();
    // A keep_rows overtakes pushes that wait for their room.
    if (piece.kind == RequestKind::keep_rows && keeping_.size() <= most_asking) {
        while (place != queue_.begin() && has_range(std::prev(place)->kind)) --place;
        return place;
    }
    if (!context_.scheduler.used() || !has_range(piece.kind) || table_.params.reproducible)
        return place;
    const int32_t priority = piece.transfer->priority;
    while (place != queue_.begin() && has_range(std::prev(place)->kind) &&
           std::prev(place)->transfer->priority < priority)
        --place;
    return place;
}

int32_t RequestChannel::urgency() const {
    int32_t highest = INT32_MIN;
    for (const Piece &piece : queue_)
        if (piece.transfer != nullptr) highest = std::max(highest, piece.transfer->priority);
    return highest;
}

void RequestChannel::count_busy() {
    if (busy_ == !idle()) return;
    busy_ = !busy_;
    if (busy_)
        context_.busy++;
    else
        context_.busy--;
}

void RequestChannel::add_clock(Piece piece) {
    piece.pushes = pushes_;
    add(piece);
    pushes_ = 0;
}

bool RequestChannel::may_leave(const Piece &piece) const {
    bool bsp_clock = piece.kind == RequestKind::clock && table_.params.consistency == DTRAIN_BSP;
    if (changing_ != UINT64_MAX && piece.kind != RequestKind::destroy) return false;
    if (piece.waits && pushes(piece.kind) && piece.transfer->asking > 0) return false;
    return next_ - oldest_ < request_window && !(bsp_clock && pulls_ > 0);
}

void RequestChannel::pump(int64_t now) {
    while (!queue_.empty() && may_leave(queue_.front())) {
        Piece &piece = queue_.front();
        if (context_.scheduler.used() && !its_turn(piece, now)) break;
        Slot &sent = launch(piece);
        if (!has_range(piece.kind) || piece.range.count == 0) queue_.pop_front();
        send(sent, now);
        if (sent.attempts == 0) break; // the wire is busy; on_timer() continues
    }
}

uint64_t RequestChannel::moved_by(const Piece &piece) const {
    if (!has_range(piece.kind)) return 0;
    const Transfer &transfer = *piece.transfer;
    const uint64_t count = std::min(piece.range.count, chunk_of(piece));
    const uint64_t bytes = bytes_on_wire(table_.params, piece.kind, transfer.item, count);
    const bool keys = has_trait(piece.kind, Trait::rows);
    const bool values =
        has_trait(piece.kind, Trait::sends) && (!keys || has_trait(piece.kind, Trait::carries));
    const bool waits = table_.params.consistency != DTRAIN_ASYNC || transfer.min_version > 0;
    const bool pulls = has_trait(piece.kind, Trait::receives) && !waits;
    return (keys ? count * sizeof(uint64_t) : 0) + (values ? bytes : 0) + (pulls ? bytes : 0);
}

bool RequestChannel::its_turn(const Piece &piece, int64_t now) {
    const uint64_t bytes = moved_by(piece);
    const bool waited = now - std::min(held_since_, now) >= SendScheduler::patience;
    if (bytes == 0 || waited || context_.scheduler.admits(server_, bytes)) {
        held_since_ = INT64_MAX;
        return true;
    }
    held_since_ = std::min(held_since_, now);
    look_at(held_since_ + SendScheduler::patience);
    context_.scheduler.hold(server_, *this);
    return false;
}

void RequestChannel::go_on(int64_t now) {
    if (context_.scheduler.used())
        context_.scheduler.pump(server_, *this, now);
    else
        pump(now);
}

RequestChannel::Slot &RequestChannel::launch(Piece &piece) {
    Slot &s = slot(next_);
    std::destroy_at(&s);
    new (&s) Slot; // "= {}" would make a temporary, and "Slot()" would clear the memory twice
    s.channel = this;
    s.transfer = piece.transfer;
    s.state = State::active;
    s.pulls = has_trait(piece.kind, Trait::receives);
    s.keeps = piece.keeps;
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
    if (piece.kind == RequestKind::set_mode && (piece.argument & mode_only_asks) == 0)
        changing_ = s.header.sequence;
    if (piece.kind == RequestKind::create) {
        s.payload = table_.create_payload.data();
        s.payload_bytes = table_.create_payload.size();
    }
    if (!has_range(piece.kind)) {
        s.header.first = piece.range.first;
        if (may_be_told(piece.kind)) make_room_for_text(s);
        return s;
    }

    if (context_.scheduler.used()) {
        s.moves = moved_by(piece);
        context_.scheduler.begin(server_, s.moves);
    }
    Range chunk = {piece.range.first, std::min(piece.range.count, chunk_of(piece))};
    s.header.count = chunk.count;
    if (pushes(piece.kind) && piece.begins) s.header.flags = begins_push;
    if (has_trait(piece.kind, Trait::rows))
        attach_rows(chunk, s);
    else
        attach(chunk, s);
    s.due = s.answer_bytes;
    if (has_function(table_.params) && may_be_told(piece.kind)) make_room_for_text(s);
    piece.range = {chunk.end(), piece.range.count - chunk.count};
    piece.begins = false;
    return s;
}

// Redirects the answer to a landing buffer, since an error text must not be written to the caller's
// memory.
void RequestChannel::make_room_for_text(Slot &s) {
    s.into = s.answer;
    s.answer_bytes = std::max<uint64_t>(s.answer_bytes, max_told);
    s.room = std::make_unique<char[]>(s.answer_bytes);
    s.answer = s.room.get();
}

char *RequestChannel::scratch_of(Slot &s, uint64_t bytes) {
    if (bytes == 0) return nullptr;
    Buffer &scratch = scratch_[s.header.sequence % request_window];
    const bool fits = bytes <= scratch.bytes();
    if (!fits && !scratch.allocate(std::max(bytes, 2 * scratch.bytes()))) throw std::bad_alloc();
    s.scratch = &scratch;
    return scratch.at(0);
}

void RequestChannel::attach(const Range &chunk, Slot &s) {
    if (travels_narrow(table_.params, s.header.kind)) return attach_narrow(chunk, s);
    const Transfer &transfer = *s.transfer;
    const Item &item = transfer.item;
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

void RequestChannel::attach_rows(const Range &rows, Slot &s) {
    const RowBatch &batch = *s.transfer->rows;
    s.rows = rows;
    batch.attach(rows, s, scratch_of(s, batch.scratch_bytes(s.header.kind, rows.count)));
}

// Rounds values as they are sent. The scratch has the pushed values first, then the answer.
void RequestChannel::attach_narrow(const Range &chunk, Slot &s) {
    const Transfer &transfer = *s.transfer;
    const uint32_t dtype = table_.params.wire_dtype;
    const bool sends = has_trait(s.header.kind, Trait::sends);
    const uint64_t bytes = row_bytes(dtype, chunk.count);
    char *scratch = scratch_of(s, bytes * (sends + s.pulls));
    s.header.first = chunk.first;
    if (sends) {
        const auto *from = static_cast<const float *>(transfer.send);
        write_row(scratch, dtype, from + (chunk.first - transfer.range.first), chunk.count);
        s.payload = scratch;
        s.payload_bytes = bytes;
    }
    if (s.pulls) {
        s.answer = scratch + bytes * sends;
        s.answer_bytes = bytes;
    }
}

void RequestChannel::send(Slot &s, int64_t now) {
    if (context_.wire.send(server_, s) != DTRAIN_OK) return repeat_at(s, now);
    s.sends += !s.copied;
    counters_.sent += s.payload_bytes;
    if (s.attempts == 0) s.sent_at = now;
    counters_.repeats += s.attempts > 0;
    repeat_at(s, now + (context_.retry_ns << std::min(s.attempts, longest_backoff)));
    ++s.attempts;
}

void RequestChannel::repeat_at(Slot &s, int64_t time) {
    s.retry_at = time;
    look_at(time);
}

void RequestChannel::look_at(int64_t time) {
    next_timer_ = std::min(next_timer_, time);
    context_.next_timer = std::min(context_.next_timer, time);
}

void RequestChannel::on_timer(int64_t now) {
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

void RequestChannel::on_sent(Outgoing &request) {
    auto &s = static_cast<Slot &>(request);
    --s.sends;
    if (s.state == State::answered && s.sends == 0) settle(s);
}

void RequestChannel::settle(Slot &s) {
    Transfer *transfer = s.transfer;
    context_.wire.settled(server_, s);
    pulls_ -= s.pulls;
    context_.scheduler.end(server_, s.moves);
    s.moves = 0;
    if (s.keeps != 0) end_kept(s.keeps, 1);
    if (s.header.sequence == changing_) changing_ = UINT64_MAX;
    s.state = State::free;
    s.transfer = nullptr;
    while (oldest_ < next_ && slot(oldest_).state == State::free) ++oldest_;
    count_busy();
    if (transfer != nullptr) settle_requests(*transfer, 1);
}

} // namespace dtrain::ps
