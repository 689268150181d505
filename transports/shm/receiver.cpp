// Matches arriving frames with receives, and copies their bytes.
// SPDX-License-Identifier: Apache-2.0
#include "shm/receiver.h"

#include <utility>

namespace dtrain::shm {

void Receiver::open(Segment &&segment, const Name &peer, const PeerProcess &process) {
    channel_.open(std::move(segment), peer);
    process_ = process;
    ChannelMemory *memory = channel_.memory();
    ring_ = RingReader(&memory->data, memory->data_bytes, data_capacity);
    grants_ = RingWriter(&memory->grants, memory->grants_bytes, grants_capacity);
}

bool Receiver::receive() {
    if (!granting_.empty()) write_grants();
    if (copies()) copy();
    if (patience_ns_ != 0) end_withdrawal();
    if (ring_.available() == 0) return ring_.intact() && grants_.intact();
    Step step = Step::taken;
    while (step == Step::taken && ring_.left() != 0) step = take_frame();
    publish();
    return step != Step::broken;
}

bool Receiver::receive_last() {
    is_last_ = true;
    ring_.refresh(); // a message that was left in the ring hides those that came after it
    return receive();
}

Receiver::Step Receiver::take_frame() {
    Frame frame; // a copy: the peer may change the original at any time
    ring_.peek(frame);
    if (frame_size(frame.bytes) > ring_.left()) return Step::broken;
    switch (frame.kind) {
    case FrameKind::eager: return take_eager(frame);
    case FrameKind::offer: return take_offer(frame);
    case FrameKind::piece: return take_piece(frame);
    case FrameKind::copied:
    case FrameKind::not_copied: return take_end_of_copy(frame);
    case FrameKind::withdrawn: return take_withdrawal(frame);
    }
    return Step::broken;
}

Receiver::Step Receiver::take_eager(const Frame &frame) {
    uint64_t cost = frame.bytes + tp::Matcher::message_cost;
    if (frame.bytes > eager_limit || cost > credit - kept_cost_) return Step::broken;
    if (tp::Receive *receive = matcher_.match(frame.tag)) {
        ring_.advance(sizeof frame);
        take_bytes(frame.bytes, receive->into);
        ring_.release(cost);
        finish(receive, frame.tag, frame.bytes);
        return Step::taken;
    }
    // A completion that was not reported yet may make the program post the receive that this
    // message needs; that is better than keeping a copy.
    if (!done_.empty() && !is_last_) return Step::held;
    tp::Message *message = matcher_.keep(frame.tag, frame.bytes);
    if (message == nullptr) return Step::held;
    message->origin = this;
    ring_.advance(sizeof frame);
    ring_.read(message->data, frame.bytes);
    ring_.pad();
    kept_cost_ += cost;
    kept_++;
    return Step::taken;
}

Receiver::Step Receiver::take_offer(const Frame &frame) {
    if (frame.bytes != sizeof(Offer) || frame.slot >= max_offers) return Step::broken;
    Incoming *incoming = incoming_.touch(frame.slot);
    if (incoming == nullptr) return Step::held;
    if (incoming->state != Incoming::State::none) return Step::broken;
    RingReader at_offer = ring_;
    Offer offer;
    at_offer.advance(sizeof frame);
    at_offer.read(&offer, sizeof offer);
    if (offer.length > message_limit) return Step::broken;
    tp::Receive *receive = matcher_.match(frame.tag);
    tp::Message *message = receive ? nullptr : matcher_.announce(frame.tag, offer.length);
    if (receive == nullptr && message == nullptr) return Step::held;
    ring_ = at_offer;
    *incoming = {};
    incoming->state = Incoming::State::announced;
    incoming->slot = frame.slot;
    incoming->tag = frame.tag;
    incoming->length = offer.length;
    incoming->from = offer.address;
    if (receive != nullptr) {
        begin(*incoming, receive);
        return Step::taken;
    }
    message->origin = this;
    message->id = frame.slot;
    kept_++;
    return Step::taken;
}

Receiver::Step Receiver::take_piece(const Frame &frame) {
    Incoming *incoming = incoming_.find(frame.slot);
    if (incoming == nullptr || incoming->state != Incoming::State::receiving ||
        incoming == copying_ || frame.bytes > incoming->left)
        return Step::broken;
    ring_.advance(sizeof frame);
    tp::IovCursor nowhere;
    take_bytes(frame.bytes, incoming->receive != nullptr ? incoming->receive->into : nowhere);
    incoming->left -= frame.bytes;
    done_.moved += frame.bytes;
    if (incoming->left == 0) end(*incoming);
    publish(); // so the peer copies the next piece in while this side copies out
    return Step::taken;
}

// Bytes that do not fit any more are dropped.
void Receiver::take_bytes(uint64_t bytes, tp::IovCursor &into) {
    for (uint64_t left = bytes; left > 0;) {
        uint64_t len = left;
        const std::byte *from = ring_.bytes(&len);
        into.scatter(from, len);
        ring_.advance(len);
        left -= len;
    }
    ring_.pad();
}

// Requests the bytes of an offered message.
void Receiver::begin(Incoming &incoming, tp::Receive *receive) {
    incoming.receive = receive;
    incoming.left = std::min(incoming.length, receive->capacity);
    uint64_t contiguous;
    receive->into.piece(&contiguous);
    bool direct = process_.is_in_reach() && incoming.from != 0 && incoming.left >= least_direct &&
                  contiguous >= incoming.left;
    if (!direct) return grant(incoming);
    incoming.state = Incoming::State::queued;
    to_copy_.push_back(&incoming);
    copy_next();
}

void Receiver::copy_next() {
    if (copying_ != nullptr || to_copy_.empty()) return;
    copying_ = to_copy_.pop_front();
    copy_failed_ = false;
    channel_.memory()->parts.open();
    grant(*copying_);
}

// Whether parts of it are left to copy.
bool Receiver::copies() const {
    return copying_ != nullptr && copying_->state == Incoming::State::receiving &&
           copying_->receive != nullptr && !channel_.memory()->parts.are_taken(copying_->left);
}

// Copies one part.
void Receiver::copy() {
    tp::Parts &parts = channel_.memory()->parts;
    const tp::Part part = parts.take(copying_->left);
    if (part.bytes == 0) return;
    if (process_.read(destination(*copying_) + part.begin, copying_->from + part.begin,
                      part.bytes)) {
        done_.moved += part.bytes;
    } else {
        copy_failed_ = true;
        parts.close();
    }
}

// The sender has found no part left.
Receiver::Step Receiver::take_end_of_copy(const Frame &frame) {
    Incoming *incoming = incoming_.find(frame.slot);
    if (frame.bytes != 0 || incoming == nullptr || incoming != copying_ ||
        incoming->state != Incoming::State::receiving)
        return Step::broken;
    ring_.advance(sizeof frame);
    copying_ = nullptr;
    bool is_complete = frame.kind == FrameKind::copied && !copy_failed_;
    if (std::exchange(patience_ns_, 0) != 0) fail(*incoming, DTRAIN_ERR_CANCELED);
    if (channel_.memory()->revocation.is_revoked(incoming->slot)) fail(*incoming, DTRAIN_ERR_PEER);
    if (is_complete || incoming->receive == nullptr) incoming->left = 0;
    grant(*incoming); // an empty grant, or a grant for pieces
    copy_next();
    return Step::taken;
}

// The sender has its memory back. The message may have been complete already.
Receiver::Step Receiver::take_withdrawal(const Frame &frame) {
    Incoming *incoming = incoming_.find(frame.slot);
    if (frame.bytes != 0 || incoming == nullptr) return Step::broken;
    ring_.advance(sizeof frame);
    const auto offered = [&](const tp::Message &m) {
        return m.origin == this && m.announced && m.id == frame.slot;
    };
    switch (incoming->state) {
    case Incoming::State::none: return Step::taken;
    case Incoming::State::announced:
        if (tp::Message *message = matcher_.take_if(offered)) release(message);
        break;
    case Incoming::State::queued: to_copy_.remove(incoming); break;
    case Incoming::State::granting: granting_.remove(incoming); break;
    case Incoming::State::receiving: break;
    }
    fail(*incoming, DTRAIN_ERR_PEER);
    const bool was_copied = incoming == copying_;
    if (was_copied) {
        copying_ = nullptr;
        patience_ns_ = 0;
    }
    incoming->left = 0;
    grant(*incoming); // an empty grant
    if (was_copied) copy_next();
    return Step::taken;
}

void Receiver::withdraw(uint64_t cookie) {
    incoming_.for_each([&](Incoming &incoming) {
        if (incoming.receive != nullptr && incoming.receive->cookie == cookie) withdraw(incoming);
    });
}

void Receiver::withdraw(Incoming &incoming) {
    if (&incoming == copying_ && incoming.state == Incoming::State::receiving) {
        tp::Parts &parts = channel_.memory()->parts;
        parts.close();
        copy_failed_ = true;
        if (patience_ns_ == 0) patience_ns_ = host_.now_ns() + tp::Parts::writing_limit_ns;
        return end_withdrawal();
    }
    fail(incoming, DTRAIN_ERR_CANCELED);
    if (incoming.state == Incoming::State::receiving) return; // the rest is dropped
    incoming.left = 0;
    if (incoming.state == Incoming::State::queued) {
        to_copy_.remove(&incoming);
        grant(incoming);                // an empty grant
    } else if (&incoming == copying_) { // in state `granting`
        copying_ = nullptr;
        copy_next();
    }
}

void Receiver::end_withdrawal() {
    if (channel_.memory()->parts.is_being_written() && host_.now_ns() < patience_ns_) return;
    patience_ns_ = 0;
    fail(*copying_, DTRAIN_ERR_CANCELED);
}

// The rest of the message is dropped.
void Receiver::fail(Incoming &incoming, Status status) {
    tp::Receive *receive = std::exchange(incoming.receive, nullptr);
    if (receive == nullptr) return;
    done_.push(receive->failed(status));
    matcher_.release(receive);
}

void Receiver::grant(Incoming &incoming) {
    incoming.state = Incoming::State::granting;
    granting_.push_back(&incoming);
    write_grants();
}

void Receiver::write_grants() {
    bool any = false;
    while (!granting_.empty() && grants_.has_room(sizeof(Grant))) {
        Incoming *incoming = granting_.pop_front();
        incoming->state = Incoming::State::receiving;
        Grant grant;
        grant.slot = incoming->slot;
        grant.bytes = incoming->left;
        if (incoming == copying_)
            grant.address = reinterpret_cast<uintptr_t>(destination(*incoming));
        grants_.write(&grant, sizeof grant);
        any = true;
        if (incoming->left == 0) end(*incoming);
    }
    if (!any) return;
    grants_.publish();
    wake(channel_.memory()->connector, channel_.peer(), bell_);
}

// Nothing more of the message will arrive.
void Receiver::end(Incoming &incoming) {
    if (incoming.receive != nullptr) finish(incoming.receive, incoming.tag, incoming.length);
    incoming = {};
}

void Receiver::deliver(tp::Message *message, tp::Receive *receive) {
    if (message->announced) {
        begin(*incoming_.find(message->id), receive);
    } else {
        receive->into.scatter(message->data, message->length);
        finish(receive, message->tag, message->length);
    }
    release(message);
}

void Receiver::discard(tp::Message *message) {
    if (message->announced) grant(*incoming_.find(message->id)); // an empty grant
    release(message);
}

void Receiver::release(tp::Message *message) {
    kept_--;
    if (!message->announced) {
        uint64_t cost = message->length + tp::Matcher::message_cost;
        kept_cost_ -= cost;
        ring_.release(cost);
        publish();
    }
    matcher_.release(message);
}

void Receiver::finish(tp::Receive *receive, uint64_t tag, uint64_t length) {
    done_.push(receive->done(tag, length));
    matcher_.release(receive);
}

void Receiver::publish() {
    ring_.publish();
    wake(channel_.memory()->connector, channel_.peer(), bell_);
}

void Receiver::fail() {
    auto offered_here = [this](const tp::Message &m) { return m.origin == this && m.announced; };
    while (tp::Message *message = matcher_.take_if(offered_here)) release(message);
    while (granting_.pop_front() != nullptr) {
    }
    while (to_copy_.pop_front() != nullptr) {
    }
    copying_ = nullptr;
    patience_ns_ = 0;
    channel_.memory()->parts.close(); // their destinations may soon be used for something else
    incoming_.for_each([this](Incoming &incoming) {
        fail(incoming, DTRAIN_ERR_PEER);
        incoming = {};
    });
}

bool Receiver::has_news() {
    return ring_.available() != 0 || !ring_.intact() || copies() ||
           (!granting_.empty() && grants_.has_room(sizeof(Grant)));
}

void Receiver::set_asleep(bool asleep) { channel_.memory()->acceptor.asleep.store(asleep); }

} // namespace dtrain::shm
