// The sending side of a connection.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/connection.h"

namespace dtrain::rdm {

bool Connection::send_now(uint64_t message_tag, const dtrain_tp_iov_t *iov, uint32_t n,
                          uint64_t length) {
    if (!may_send() || queue_.front() || !control_.empty()) return false;
    if (length > std::min(copy_limit_, shared_.eager_limit) || !window_.has_room(length))
        return false;
    Operation payload;
    payload.memory.assign(iov, n, length);
    const Head head{.kind = Kind::eager, .tag = message_tag, .length = length};
    if (send_head(head, length ? &payload : nullptr) != Sent::now) return false;
    window_.sent(length);
    shared_.completions.moved += length;
    return true;
}

void Connection::post(Job *message) {
    queue_.push_back(message);
    flush();
}

void Connection::flush() {
    if (!may_send()) return;
    while (!control_.empty()) {
        const Sent result = send_head(control_.front(), nullptr);
        if (result == Sent::busy) shared_.waits = true;
        if (result != Sent::now) return;
        control_.pop();
    }
    while (queue_.front() && send_message()) {
    }
}

void Connection::work() {
    flush();
    if (sealed_ && may_send()) sealed_->work();
}

// Every head carries the credit that is due.
Sent Connection::send_head(Head head, Operation *payload) {
    head.credit = window_.due();
    const Sent result = rdm::send(*carrier_, *channel_, head, nullptr, 0, payload);
    if (result == Sent::now || result == Sent::later) window_.told();
    return result;
}

bool Connection::send_message() {
    Job *message = queue_.front();
    const uint64_t length = message->length;
    if (message->begun) return send_part({.kind = Kind::part});
    Head head{.kind = Kind::eager, .tag = message->tag, .length = length};
    const bool eager = length <= shared_.eager_limit && window_.has_room(length);
    if (!eager) {
        if (!rendezvous_.announce(message)) return false; // until one of them is fetched
        head.kind = Kind::bulk;
        head.id = message->id;
    } else if (length > part_limit_) {
        return send_part(head);
    }
    const Sent result = send_head(head, !eager || length ? message : nullptr);
    if (result == Sent::busy || result == Sent::broken) {
        if (!eager) rendezvous_.end(message);
        shared_.waits |= result == Sent::busy;
        return false;
    }
    queue_.remove(message);
    message->bulk = !eager;
    shared_.completions.moved += length;
    if (eager) window_.sent(length);
    if (result == Sent::now)
        finish(message, DTRAIN_OK);
    else
        flying_.push_back(message);
    return true;
}

// Sends the next bytes of an eager message that does not fit in one packet.
bool Connection::send_part(const Head &head) {
    Job *message = queue_.front(), *part = shared_.jobs.get();
    if (!part) {
        shared_.waits = true; // there may be memory later
        return false;
    }
    part->kind = Job::Kind::part;
    part->connection = this;
    part->whole = message;
    part->memory = message->memory;
    part->memory.truncate(part_limit_);
    const uint64_t length = part->memory.remaining();
    const Sent result = send_head(head, part);
    if (result == Sent::busy || result == Sent::broken) {
        shared_.jobs.put(part);
        shared_.waits |= result == Sent::busy;
        return false;
    }
    if (!message->begun) window_.sent(message->length);
    message->begun = true;
    message->parts++;
    message->memory.advance(length);
    shared_.completions.moved += length;
    flying_.push_back(part);
    if (!message->memory.remaining()) {
        queue_.remove(message);
        flying_.push_back(message);
    }
    if (result == Sent::now) on_done(part, true);
    return true;
}

Sent Connection::began(Job *job, Sent result) {
    if (result == Sent::now)
        on_arrived(job);
    else if (result == Sent::later)
        flying_.push_back(job);
    return result;
}

Sent Connection::put(Job *job, uint64_t remote_address, const void *rkey) {
    if (closed_ns_) return Sent::broken;
    return began(job, shared_.wire->put(channel_->link, job, remote_address, rkey));
}

Sent Connection::get(Job *job, uint64_t remote_address, const void *rkey) {
    if (closed_ns_) return Sent::broken;
    return began(job, shared_.wire->get(channel_->link, job, remote_address, rkey));
}

void Connection::control(const Head &head) {
    if (!control_.push(head)) starve();
}

// Returns the credit for a message of that length.
void Connection::give_credit(uint64_t length) {
    if (window_.give_back(length) && control_.empty()) control({.kind = Kind::credit});
}

} // namespace dtrain::rdm
