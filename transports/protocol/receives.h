// The posted receives of a device, and the messages that no receive has taken yet.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/completions.h"
#include "common/match.h"

namespace dtrain::protocol {

// Sees to it that each receive completes exactly once: whoever takes one out of here (match(), or
// post() together with a message) ends it with complete() or fail(). `origin` is the connection of
// a message; nullptr once that is gone.
class Receives {
  public:
    explicit Receives(tp::Completions *completions) : completions_(*completions) {}

    // Posts a receive. False: no memory. If a kept message fits, both are handed out instead.
    struct Match {
        tp::Receive *receive = nullptr;
        tp::Message *message = nullptr;
    };
    bool post(uint64_t wanted, uint64_t mask, const dtrain_tp_iov_t *iov, uint32_t n,
              uint64_t length, uint64_t cookie, Match *match) {
        match->receive = matcher_.create(wanted, mask, iov, n, length, cookie);
        if (!match->receive || !completions_.reserve(1)) {
            if (match->receive) matcher_.release(match->receive);
            return false;
        }
        match->message = matcher_.post(match->receive);
        return true;
    }
    void cancel(uint64_t cookie) {
        if (tp::Receive *receive = matcher_.cancel(cookie)) fail(receive, DTRAIN_ERR_CANCELED);
    }
    // A message of `length` bytes is in the receive's memory, as far as it fits.
    void complete(tp::Receive *receive, uint64_t tag, uint64_t length) {
        completions_.push(receive->done(tag, length));
        matcher_.release(receive);
    }
    void fail(tp::Receive *receive, dtrain_status_t status) {
        completions_.push(receive->failed(status));
        matcher_.release(receive);
    }

    // A message arrives: takes out the receive for it, or returns nullptr; then keep() or
    // announce() keeps the message, or returns nullptr: no memory.
    tp::Receive *match(uint64_t tag) { return matcher_.match(tag); }
    tp::Message *keep(uint64_t tag, uint64_t length, void *origin) {
        return from(matcher_.keep(tag, length), origin);
    }
    tp::Message *announce(uint64_t tag, uint64_t length, uint32_t id, void *origin) {
        tp::Message *message = from(matcher_.announce(tag, length), origin);
        if (message) message->id = id;
        return message;
    }
    // Takes out kept messages: the oldest of these tags; the one that its sender announced as `id`.
    tp::Message *take(uint64_t wanted, uint64_t mask) { return matcher_.take(wanted, mask); }
    tp::Message *take_announced(const void *origin, uint32_t id) {
        return matcher_.take_if(
            [&](const tp::Message &m) { return m.origin == origin && m.announced && m.id == id; });
    }
    void release(tp::Message *message) { matcher_.release(message); }
    // A connection is lost: of the messages that its peer sent only complete ones remain.
    // drop(tp::Message &) is called for the others.
    template <class Drop> void lose(const void *origin, Drop &&drop) {
        const auto lost = [origin](const tp::Message &m) {
            return m.origin == origin && (m.announced || m.arrived < m.length);
        };
        while (tp::Message *message = matcher_.take_if(lost)) {
            drop(*message);
            matcher_.release(message);
        }
        matcher_.for_each([origin](tp::Message &m) {
            if (m.origin == origin) m.origin = nullptr;
        });
    }

  private:
    static tp::Message *from(tp::Message *message, void *origin) {
        if (message) message->origin = origin;
        return message;
    }

    tp::Completions &completions_;
    // It is unlimited: each connection's window bounds what its peer can make us keep.
    tp::Matcher matcher_{UINT64_MAX};
};

} // namespace dtrain::protocol
