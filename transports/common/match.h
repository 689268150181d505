// Tag matching for transports whose network has none: receives that wait for their message, and
// messages that wait for their receive. It uses no network, calls no callbacks, and never throws.
//
//   recv():        r = create(...); m = post(r);
//                  m == nullptr: r now waits. Else m is the oldest kept message that r wants, taken
//                  out: copy m->data into r->into, complete r, release both (or, if m was only
//                  announced, ask its sender for the data, straight into r->into).
//   header:        when one arrives: r = match(tag);
//                  r: it is taken out; write the payload straight into r->into, complete, release.
//                  nullptr: m = keep(tag, length) and read the payload into m->data; or, if the
//                  sender waits for a request, announce(tag, length) and store in m->origin and
//                  m->id where to send it. Both return nullptr if they must not or cannot keep it:
//                  leave the message where it is and try again later, or give up on its sender.
//   payload bytes: a message may be taken while its payload still arrives (m->arrived < length):
//                  then set m->taken_by = r and finish both when the rest has arrived.
//   cancel():      r = cancel(cookie); r: complete it with DTRAIN_ERR_CANCELED, release.
//   purge():       while ((m = take(wanted, mask))) ... release.
//
// Receives match in the order in which they were posted, messages in the order in which they
// arrived. A receive with an all-ones mask costs one hash look-up; others are searched in order.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "iov.h"
#include "pool.h"
#include "tag_table.h"

namespace dtrain::tp {

struct Receive {
    uint64_t tag = 0; // as wanted
    uint64_t mask = 0;
    uint64_t cookie = 0;
    uint64_t capacity = 0; // bytes of the whole list
    uint64_t sequence = 0; // place in the posting order
    IovCursor into;
    Link<Receive> order, chain;

    bool wants(uint64_t t) const { return ((t ^ tag) & mask) == 0; }
    // The completion for a message of `length` bytes, after as many as fit were stored.
    dtrain_tp_done_t done(uint64_t message_tag, uint64_t length) const {
        const dtrain_status_t status = length > capacity ? DTRAIN_ERR_TRUNCATED : DTRAIN_OK;
        return {cookie, length, message_tag, 0, status, DTRAIN_TP_RECV, 0};
    }
    dtrain_tp_done_t failed(dtrain_status_t status) const {
        return {cookie, 0, tag, 0, status, DTRAIN_TP_RECV, 0};
    }
};

struct Message {
    uint64_t tag = 0;
    uint64_t length = 0;     // bytes that were sent
    uint64_t arrived = 0;    // bytes of data that have arrived; counted by the transport
    uint8_t *data = nullptr; // `length` bytes; nullptr if announced, or if length is 0
    bool announced = false;
    void *origin = nullptr; // origin, remote, id and taken_by belong to the transport
    void *remote = nullptr;
    uint64_t id = 0;
    Receive *taken_by = nullptr;
    Link<Message> order, chain;
};

class Matcher {
  public:
    // Cost of a kept message in addition to its bytes, so that empty ones are bounded, too.
    static constexpr uint64_t message_cost = 128;

    // Keeps messages as long as their total cost is at most keep_limit bytes.
    explicit Matcher(uint64_t keep_limit) : keep_limit_(keep_limit) {}
    ~Matcher() { // frees messages that were not taken
        while (Message *message = take(0, 0)) release(message);
        while (Receive *receive = exact_.front()) {
            exact_.remove(receive);
            release(receive);
        }
        while (Receive *receive = masked_.pop_front()) release(receive);
    }

    // Creates a receive without posting it; `length` was computed by iov_length(). nullptr: no
    // memory.
    Receive *create(uint64_t wanted, uint64_t mask, const dtrain_tp_iov_t *iov, uint32_t n,
                    uint64_t length, uint64_t cookie) {
        Receive *receive = receives_.get();
        if (!receive) return nullptr;
        receive->tag = wanted;
        receive->mask = mask;
        receive->cookie = cookie;
        receive->capacity = length;
        receive->into.assign(iov, n, length);
        return receive;
    }
    void release(Receive *receive) { receives_.put(receive); }

    // Takes out the oldest kept message that the receive wants, or queues the receive (nullptr).
    Message *post(Receive *receive) {
        if (Message *message = take(receive->tag, receive->mask)) return message;
        receive->sequence = next_sequence_++;
        if (receive->mask == exact)
            exact_.insert(receive);
        else
            masked_.push_back(receive);
        return nullptr;
    }

    // Takes out the receive that was posted first among those that want this tag, or nullptr.
    Receive *match(uint64_t tag) {
        Receive *found = exact_.find(tag);
        Receive *masked = masked_.front();
        while (masked && !masked->wants(tag)) masked = Masked::next(masked);
        if (masked && (!found || masked->sequence < found->sequence)) {
            masked_.remove(masked);
            return masked;
        }
        if (found) exact_.remove(found);
        return found;
    }

    // Takes out the receive with this cookie if it still waits, or returns nullptr. Linear time.
    Receive *cancel(uint64_t cookie) {
        for (Receive *r = masked_.front(); r; r = Masked::next(r))
            if (r->cookie == cookie) {
                masked_.remove(r);
                return r;
            }
        for (Receive *r = exact_.front(); r; r = exact_.next(r))
            if (r->cookie == cookie) {
                exact_.remove(r);
                return r;
            }
        return nullptr;
    }

    // Makes room for a message that no posted receive wants. nullptr: over the limit, or no memory.
    Message *keep(uint64_t tag, uint64_t length) { return insert(tag, length, length); }
    // As keep(), but without data: the sender waits until it is asked for them.
    Message *announce(uint64_t tag, uint64_t length) {
        Message *message = insert(tag, length, 0);
        if (message) message->announced = true;
        return message;
    }
    // Takes out the oldest kept message with (tag & mask) == (wanted & mask), or nullptr.
    Message *take(uint64_t wanted, uint64_t mask) {
        if (mask == exact) {
            Message *message = kept_.find(wanted);
            if (message) kept_.remove(message);
            return message;
        }
        return take_if([&](const Message &m) { return ((m.tag ^ wanted) & mask) == 0; });
    }
    // As take(), with any condition: bool(const Message &).
    template <class Condition> Message *take_if(Condition &&condition) {
        for (Message *message = kept_.front(); message; message = kept_.next(message))
            if (condition(*message)) {
                kept_.remove(message);
                return message;
            }
        return nullptr;
    }
    // Calls visit(Message &) for each kept message, oldest first.
    template <class Visit> void for_each(Visit &&visit) {
        for (Message *message = kept_.front(); message; message = kept_.next(message))
            visit(*message);
    }
    // Frees a message that was taken out, with its data.
    void release(Message *message) {
        kept_cost_ -= message_cost + (message->data ? message->length : 0);
        if (message->data) blocks_.put(message->data, message->length);
        messages_.put(message);
    }
    // Total cost in bytes of messages that are kept, or taken and not released yet.
    uint64_t kept_cost() const { return kept_cost_; }

  private:
    using Masked = List<Receive, &Receive::order>;
    static constexpr uint64_t exact = ~uint64_t{0};

    Message *insert(uint64_t tag, uint64_t length, uint64_t data_bytes) {
        const uint64_t room = keep_limit_ - kept_cost_;
        if (room < message_cost || data_bytes > room - message_cost) return nullptr;
        Message *message = messages_.get();
        if (!message) return nullptr;
        if (data_bytes && !(message->data = static_cast<uint8_t *>(blocks_.get(data_bytes)))) {
            messages_.put(message);
            return nullptr;
        }
        message->tag = tag;
        message->length = length;
        kept_cost_ += message_cost + data_bytes;
        kept_.insert(message);
        return message;
    }

    const uint64_t keep_limit_;
    uint64_t kept_cost_ = 0;
    uint64_t next_sequence_ = 0;
    Pool<Receive> receives_;
    Pool<Message> messages_;
    BlockPool blocks_;
    TagTable<Receive> exact_; // mask of all ones
    Masked masked_;
    TagTable<Message> kept_;
};

} // namespace dtrain::tp
