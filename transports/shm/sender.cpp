// Writes messages into the ring, or copies them together with the receiver.
// SPDX-License-Identifier: Apache-2.0
#include "shm/sender.h"

namespace dtrain::shm {

void Sender::open(Segment &&segment, const Name &peer, const PeerProcess &process,
                  tp::Distance distance) {
    channel_.open(std::move(segment), peer);
    process_ = process;
    ChannelMemory *memory = channel_.memory();
    ring_ = RingWriter(&memory->data, memory->data_bytes, data_capacity, distance);
    grants_ = RingReader(&memory->grants, memory->grants_bytes, grants_capacity);
}

Status Sender::post(uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n, uint64_t length,
                    uint64_t cookie) {
    if (pending_ >= max_offers) return DTRAIN_ERR_BUSY; // so that an offer always finds a slot
    if (!done_.reserve()) return DTRAIN_ERR_NO_MEMORY;
    SendOp *op = ops_.get();
    if (op == nullptr) {
        done_.unreserve();
        return DTRAIN_ERR_NO_MEMORY;
    }
    op->tag = tag;
    op->cookie = cookie;
    op->length = length;
    op->from.assign(iov, n, length);
    pending_++;
    waiting_.push_back(op);
    return DTRAIN_OK;
}

bool Sender::advance() {
    if (channel_.memory() == nullptr) return true;
    if (offers_ != 0 && !take_grants()) return false;
    if (!to_tell_.empty()) tell_withdrawals();
    while (!waiting_.empty() && start(waiting_.front())) {
    }
    if (!copying_.empty()) copy();
    if (waiting_.empty()) stream(); // otherwise streaming would keep the ring full forever
    if (written_) {
        written_ = false;
        ring_.publish();
        wake(channel_.memory()->acceptor, channel_.peer(), bell_);
    }
    return ring_.intact();
}

bool Sender::is_eager(const SendOp &op) {
    if (op.length > most_eager_) return false;
    uint64_t cost = op.length + tp::Matcher::message_cost;
    if (credit - ring_.owed() < cost) ring_.refresh();
    return credit - ring_.owed() >= cost;
}

// Takes the operation out of waiting_. False: there is no room yet.
bool Sender::start(SendOp *op) {
    if (is_eager(*op)) {
        if (!ring_.has_room(frame_size(op->length))) return false;
        ring_.charge(op->length + tp::Matcher::message_cost);
        write_frame({static_cast<uint32_t>(op->length), FrameKind::eager, 0, op->tag}, op->from);
        waiting_.remove(op);
        complete(op, DTRAIN_OK);
        return true;
    }
    return ring_.has_room(frame_size(sizeof(Offer))) && offer(op);
}

bool Sender::offer(SendOp *op) {
    // There is a free one, since at most max_offers are pending.
    bool is_new = free_slot_ == no_slot;
    uint32_t number = is_new ? used_slots_ : free_slot_;
    Slot *slot = slots_.touch(number);
    if (slot == nullptr) return false; // no memory: try later
    if (is_new)
        used_slots_++;
    else
        free_slot_ = slot->next_free;
    slot->op = op;
    offers_++;
    waiting_.remove(op);
    op->offered = true;
    op->slot = static_cast<uint16_t>(number);
    uint64_t contiguous;
    uint8_t *address = op->from.piece(&contiguous);
    op->direct = process_.is_in_reach() && contiguous == op->length && is_worth_direct(op->length);
    Offer offer{op->length, op->direct ? reinterpret_cast<uintptr_t>(address) : 0};
    Frame frame{sizeof offer, FrameKind::offer, op->slot, op->tag};
    ring_.write_unit(frame);
    ring_.write_unit(offer);
    written_ = true;
    return true;
}

// Some messages go through the ring all the same, since what is written there measures the
// distance.
bool Sender::is_worth_direct(uint64_t length) {
    if (length < (ring_.reader_is_far() ? least_direct_far : least_direct)) return false;
    return length >= least_direct_far || ++direct_ % direct_between_rings != 0;
}

bool Sender::take_grants() {
    bool any = false;
    while (grants_.available() != 0) {
        Grant grant;
        grants_.read(&grant, sizeof grant);
        if (!take_grant(grant)) return false;
        any = true;
    }
    if (any) {
        grants_.publish();
        wake(channel_.memory()->acceptor, channel_.peer(), bell_);
    }
    return grants_.intact();
}

bool Sender::take_grant(const Grant &grant) {
    Slot *slot = slots_.find(grant.slot);
    SendOp *op = slot != nullptr ? slot->op : nullptr;
    if (op == nullptr || grant.bytes > op->length || (grant.address != 0 && !op->direct))
        return false;
    if (op->withdrawn) { // granted before the receiver knew, or its last grant
        if (grant.bytes == 0) release(op);
        return true;
    }
    if (op->granted) return false;
    if (grant.bytes == 0) {
        complete(op, DTRAIN_OK);
        return true;
    }
    op->granted = true;
    op->from.truncate(grant.bytes);
    op->into = grant.address;
    (grant.address != 0 ? copying_ : streaming_).push_back(op);
    return true;
}

// Copies one part. Writes only to addresses that the receiver's own process has given.
void Sender::copy() {
    if (!ring_.has_room(sizeof(Frame))) return; // room to report the end
    SendOp *op = copying_.front();
    tp::Parts &parts = channel_.memory()->parts;
    uint64_t bytes;
    const uint8_t *from = op->from.piece(&bytes);
    parts.begin_write();
    const tp::Part part = parts.take(bytes);
    bool copied =
        part.bytes == 0 || process_.write(op->into + part.begin, from + part.begin, part.bytes);
    parts.end_write();
    done_.moved += part.bytes;
    if (copied && !parts.are_taken(bytes)) return;
    Frame frame{0, copied ? FrameKind::copied : FrameKind::not_copied, op->slot, op->tag};
    ring_.write_unit(frame);
    written_ = true;
    copying_.remove(op);
    op->granted = false; // the receiver ends it
}

void Sender::stream() {
    while (SendOp *op = streaming_.front()) {
        uint64_t bytes = std::min(op->from.remaining(), max_piece);
        if (!ring_.has_room(frame_size(bytes))) {
            uint64_t room = ring_.room() / ring_unit * ring_unit;
            if (room < frame_size(min_piece)) return;
            bytes = std::min(bytes, room - sizeof(Frame));
        }
        write_frame({static_cast<uint32_t>(bytes), FrameKind::piece, op->slot, op->tag}, op->from);
        done_.moved += bytes;
        ring_.publish(); // the peer copies this one out while the next one is copied in
        if (op->from.remaining() != 0) continue;
        streaming_.remove(op);
        complete(op, DTRAIN_OK);
    }
}

void Sender::write_frame(const Frame &frame, tp::IovCursor &from) {
    ring_.write_unit(frame);
    for (uint64_t left = frame.bytes; left > 0;) {
        uint64_t len;
        const uint8_t *piece = from.piece(&len);
        len = std::min(len, left);
        ring_.write(piece, len);
        from.advance(len);
        left -= len;
    }
    ring_.pad();
    written_ = true;
}

void Sender::withdraw(uint64_t cookie) {
    for (SendOp *op = waiting_.front(), *next; op != nullptr; op = next) {
        next = Ops::next(op);
        if (op->cookie != cookie) continue;
        waiting_.remove(op);
        complete(op, DTRAIN_ERR_CANCELED);
    }
    slots_.for_each([&](Slot &slot) {
        if (slot.op != nullptr && slot.op->cookie == cookie && !slot.op->withdrawn)
            take_back(slot.op);
    });
}

// Takes back an offered message.
void Sender::take_back(SendOp *op) {
    const bool is_direct = op->into != 0;
    if (is_direct)
        channel_.memory()->revocation.revoke(op->slot); // before its owner gets the memory
    if (op->granted) (is_direct ? copying_ : streaming_).remove(op);
    op->withdrawn = true;
    op->to_tell = op->granted || !is_direct; // otherwise the end of copying was reported
    if (op->to_tell) to_tell_.push_back(op);
    report(*op, DTRAIN_ERR_CANCELED);
}

void Sender::tell_withdrawals() {
    while (!to_tell_.empty() && ring_.has_room(sizeof(Frame))) {
        SendOp *op = to_tell_.pop_front();
        op->to_tell = false;
        const FrameKind kind = op->into != 0 ? FrameKind::copied : FrameKind::withdrawn;
        ring_.write_unit(Frame{0, kind, op->slot, op->tag});
        written_ = true;
    }
}

void Sender::report(const SendOp &op, Status status) {
    done_.push({op.cookie, op.length, op.tag, 0, status, DTRAIN_TP_SEND, 0});
}

void Sender::release(SendOp *op) {
    if (op->offered) {
        *slots_.find(op->slot) = {nullptr, free_slot_};
        free_slot_ = op->slot;
        offers_--;
    }
    if (op->to_tell) to_tell_.remove(op);
    if (op->withdrawn) channel_.memory()->revocation.forget(op->slot);
    pending_--;
    ops_.put(op);
}

void Sender::fail(Status status) {
    // A receiver that has all of a message may exit as soon as it has reported that.
    Grant grant;
    while (offers_ != 0 && grants_.available() != 0) {
        grants_.read(&grant, sizeof grant);
        if (!take_grant(grant)) break;
    }
    while (SendOp *op = waiting_.pop_front()) complete(op, status);
    while (streaming_.pop_front() != nullptr) {
    }
    while (copying_.pop_front() != nullptr) {
    }
    slots_.for_each([&](Slot &slot) {
        if (slot.op == nullptr) return;
        if (!slot.op->withdrawn) report(*slot.op, status);
        release(slot.op);
    });
}

void Sender::set_asleep(bool asleep) {
    if (channel_.memory() != nullptr) channel_.memory()->connector.asleep.store(asleep);
}

bool Sender::can_advance() {
    if (channel_.memory() == nullptr) return false;
    if (offers_ != 0 && grants_.available() != 0) return true;
    if (!to_tell_.empty()) return ring_.has_room(sizeof(Frame));
    if (SendOp *op = waiting_.front())
        return ring_.has_room(frame_size(is_eager(*op) ? op->length : sizeof(Offer)));
    if (!copying_.empty()) return ring_.has_room(sizeof(Frame));
    if (SendOp *op = streaming_.front())
        return ring_.has_room(frame_size(std::min(op->from.remaining(), min_piece)));
    return !ring_.intact() || !grants_.intact();
}

} // namespace dtrain::shm
