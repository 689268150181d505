// The records of a connection.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/sealed.h"
#include "rdm/connection.h"

#include <algorithm>
#include <new>

namespace dtrain::rdm {
namespace {

constexpr size_t most_in = tp::max_payload + tp::record_overhead; // whatever the peer's wire sends
constexpr auto any = [](const auto &) { return true; };

Job *job_of(Operation *operation) { return static_cast<Job *>(operation); }

} // namespace

std::unique_ptr<Sealed> Sealed::make(Shared &shared, Connection &owner, const Channel &channel,
                                     tp::Guard guard) {
    std::unique_ptr<Sealed> made(new (std::nothrow)
                                     Sealed(shared, owner, channel, std::move(guard)));
    if (!made) return nullptr;
    constexpr size_t overhead = Head::wire_length + tp::record_overhead;
    const size_t most =
        std::min<size_t>(shared.wire->attr().head_limit, overhead + tp::max_payload);
    made->room_ = whole_words(most - overhead - sizeof(Part));
    made->out_.reset(new (std::nothrow) uint8_t[most]);
    made->in_.reset(new (std::nothrow) uint8_t[most_in]);
    return made->out_ && made->in_ ? std::move(made) : nullptr;
}

// Makes a packet; none waits for the wire. Its bytes are copied, so they may be reused at once.
void Sealed::seal(const Part &part, const void *head, size_t len, tp::IovCursor *from,
                  uint64_t bytes) {
    const Head outer{.kind = Kind::record,
                     .to = channel_.peer_number,
                     .token = channel_.peer_token,
                     .sequence = sequence_++};
    outer.encode(out_.get());
    uint8_t *const record = out_.get() + Head::wire_length;
    uint8_t *const payload = record + tp::record_header;
    memcpy(payload, &part, sizeof part);
    if (len) memcpy(payload + sizeof part, head, len);
    if (bytes) from->gather(payload + sizeof part + len, bytes);
    shared_.copied += bytes;
    out_length_ = Head::wire_length + guard_.seal(record, sizeof part + len + bytes);
}

// Once a record is made, it has to go: its number is used.
Sent Sealed::flush_record() {
    if (!out_length_) return Sent::now;
    const Sent result = shared_.wire->send(channel_.link, out_.get(), out_length_, nullptr);
    if (result == Sent::now) out_length_ = 0;
    if (result == Sent::busy) shared_.waits = true;
    return result;
}

// Sends what goes before anything else.
Sent Sealed::flush() {
    for (;;) {
        const Sent result = flush_record();
        if (result != Sent::now || notes_.empty()) return result;
        seal(notes_.pop(), nullptr, 0, nullptr, 0);
    }
}

void Sealed::note(const Part &part) {
    shared_.attention = true;
    if (!notes_.push(part)) owner_.starve();
}

void Sealed::work() {
    tell_failed();
    while (flush() == Sent::now && send_piece()) {
    }
}

// False: there is none, or it has to wait for credit.
bool Sealed::send_piece() {
    Outgoing *bulk = streams_.front();
    if (!bulk) return false;
    tp::IovCursor &from = bulk->operation->memory;
    const uint64_t length = std::min(from.remaining(), room_);
    if (!window_.has_room(length)) return false;
    window_.sent(length);
    seal({.kind = PartKind::data, .place = bulk->place}, nullptr, 0, &from, length);
    shared_.completions.moved += length;
    streams_.remove(bulk);
    bulk->streams = from.remaining() > 0;
    if (bulk->streams) streams_.push_back(bulk);
    return true;
}

Sent Sealed::send(Link *, const void *head, size_t len, Operation *payload) {
    if (const Sent result = flush(); result != Sent::now) return result;
    tp::IovCursor *const from = payload ? &payload->memory : nullptr;
    seal({.kind = PartKind::packet}, head, len, from, from ? from->remaining() : 0);
    return flush_record() == Sent::broken ? Sent::broken : Sent::now;
}

Sent Sealed::announce(Link *, const void *head, size_t len, Operation *bulk) {
    if (const Sent result = flush(); result != Sent::now) return result;
    Outgoing *made = outgoing_pool_.get();
    if (!made || !outgoing_.insert(made, &made->id)) {
        if (made) outgoing_pool_.put(made);
        shared_.waits = true; // there may be memory later
        return Sent::busy;
    }
    made->operation = bulk;
    bulk->wire = made;
    seal({.kind = PartKind::announce, .id = htole32(made->id)}, head, len, nullptr, 0);
    if (flush_record() != Sent::broken) return Sent::later;
    forget(made);
    return Sent::broken;
}

void Sealed::forget(Outgoing *bulk) {
    if (bulk->streams) streams_.remove(bulk);
    outgoing_.remove(bulk->id);
    outgoing_pool_.put(bulk);
}

void Sealed::finish(Outgoing *bulk, bool ok) {
    Operation *operation = bulk->operation;
    forget(bulk);
    owner_.on_done(job_of(operation), ok);
}

bool Sealed::withdraw(Operation *operation) {
    auto *bulk = static_cast<Outgoing *>(operation->wire);
    if (bulk->granted) note({.kind = PartKind::ended, .place = bulk->place});
    forget(bulk);
    return true;
}

void Sealed::fetch(Link *link, Remote *remote, Operation *place) {
    Incoming *transfer = incoming_pool_.get();
    if (!transfer || !incoming_.insert(transfer, &transfer->place)) {
        if (transfer) incoming_pool_.put(transfer);
        drop(link, remote);
        place->failure = DTRAIN_ERR_NO_MEMORY;
        return fail_later(place);
    }
    auto *announced = static_cast<Announced *>(remote);
    transfer->operation = place;
    transfer->id = announced->id;
    transfer->missing = place->memory.remaining();
    place->wire = transfer;
    note({.kind = PartKind::grant,
          .id = htole32(announced->id),
          .place = htole32(transfer->place),
          .length = htole64(transfer->missing)});
    delete announced;
}

void Sealed::drop(Link *link, Remote *remote) {
    auto *announced = static_cast<Announced *>(remote);
    if (link) note({.kind = PartKind::grant, .id = htole32(announced->id)});
    delete announced;
}

// What its sender still sends is dropped.
void Sealed::break_off(Operation *place) {
    static_cast<Incoming *>(place->wire)->operation = nullptr;
    fail_later(place);
}

void Sealed::fail_later(Operation *fetched) {
    fetched->wire = failed_;
    failed_ = fetched;
    shared_.attention = true;
}

void Sealed::tell_failed() {
    while (Operation *fetched = failed_) {
        failed_ = static_cast<Operation *>(fetched->wire);
        owner_.on_done(job_of(fetched), false);
    }
}

void Sealed::finish(Incoming *transfer, bool ok) {
    Operation *operation = transfer->operation;
    incoming_.remove(transfer->place);
    incoming_pool_.put(transfer);
    if (operation) owner_.on_done(job_of(operation), ok);
}

void Sealed::end() {
    tell_failed();
    while (Outgoing *bulk = outgoing_.find_if(any)) finish(bulk, false);
    while (Incoming *transfer = incoming_.find_if(any)) finish(transfer, false);
}

// Nothing in it is believed before it is open, except for its length.
void Sealed::on_record(const uint8_t *body, size_t len) {
    const bool may_be_one = len > tp::record_overhead && len <= most_in;
    const size_t length = may_be_one ? tp::Guard::payload_length(body) : 0;
    if (!length || length + tp::record_overhead != len) return owner_.on_corrupt();
    memcpy(in_.get(), body, len);
    if (!guard_.open(in_.get(), length)) return owner_.on_corrupt();
    Part part;
    Head head;
    const uint8_t *rest = in_.get() + tp::record_header + sizeof part;
    const size_t left = length - std::min(length, sizeof part);
    if (length >= sizeof part) memcpy(static_cast<void *>(&part), rest - sizeof part, sizeof part);
    if (left >= Head::wire_length) head.decode(rest);
    const bool has_head = left >= Head::wire_length;
    switch (part.kind) {
    case PartKind::packet:
        if (!has_head) break;
        return owner_.on_packet(head, rest + Head::wire_length, left - Head::wire_length);
    case PartKind::announce: {
        auto *announced = has_head ? new (std::nothrow) Announced : nullptr;
        if (!has_head) break;
        if (!announced) return owner_.starve();
        announced->id = le32toh(part.id);
        return owner_.on_bulk(head, announced);
    }
    case PartKind::grant: return on_grant(part);
    case PartKind::data: return on_data(part, rest, left);
    case PartKind::credit: return on_credit(part);
    case PartKind::fetched: return on_fetched(part);
    case PartKind::ended: return on_ended(part);
    }
    owner_.quit("protocol error: a record that is malformed");
}

void Sealed::on_grant(const Part &part) {
    const uint64_t length = le64toh(part.length);
    Outgoing *bulk = outgoing_.find(le32toh(part.id));
    if (!bulk) { // it was taken back meanwhile
        if (length) note({.kind = PartKind::ended, .place = part.place});
        return;
    }
    if (bulk->granted || length > bulk->operation->memory.remaining())
        return owner_.quit("protocol error: more bytes were granted than announced");
    if (!length) return finish(bulk, true);
    bulk->operation->memory.truncate(length);
    bulk->place = part.place;
    bulk->granted = bulk->streams = true;
    streams_.push_back(bulk);
    shared_.attention = true;
}

void Sealed::on_data(const Part &part, const uint8_t *bytes, size_t len) {
    Incoming *transfer = incoming_.find(le32toh(part.place));
    if (!transfer || !len || len > transfer->missing || !window_.take(len))
        return owner_.quit("protocol error: data that was not requested, or too much at once");
    transfer->missing -= len;
    shared_.completions.moved += len;
    if (window_.give_back(len)) {
        note({.kind = PartKind::credit, .length = htole64(window_.due())});
        window_.told();
    }
    if (transfer->operation) shared_.copied += transfer->operation->memory.scatter(bytes, len);
    if (transfer->missing) return;
    note({.kind = PartKind::fetched, .id = htole32(transfer->id)});
    finish(transfer, true);
}

void Sealed::on_credit(const Part &part) {
    const uint64_t length = le64toh(part.length);
    if (length > stream_window || !window_.refill(uint32_t(length)))
        return owner_.quit("protocol error: more credit than was used");
    shared_.attention |= !streams_.empty();
}

// Its sender may have taken it back meanwhile.
void Sealed::on_fetched(const Part &part) {
    Outgoing *bulk = outgoing_.find(le32toh(part.id));
    if (!bulk) return;
    if (!bulk->granted || bulk->streams)
        return owner_.quit("protocol error: more was fetched than was sent");
    finish(bulk, true);
}

// All of it may have come before.
void Sealed::on_ended(const Part &part) {
    if (Incoming *transfer = incoming_.find(le32toh(part.place))) finish(transfer, false);
}

} // namespace dtrain::rdm
