// The receiving side of a connection. Everything in a head is checked before it is used.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/connection.h"

namespace dtrain::rdm {
namespace {

constexpr uint32_t completion_of[] = {DTRAIN_TP_SEND, DTRAIN_TP_RECV, DTRAIN_TP_PUT, DTRAIN_TP_GET};

} // namespace

bool Connection::accept(const Head &head) {
    if (!window_.refill(head.credit)) quit("protocol error: more credit than was used");
    return !broken_;
}

void Connection::hear(const Head &head, const uint8_t *body, size_t len) {
    if (!sealed_) return on_packet(head, body, len);
    if (broken_) return;
    if (head.kind == Kind::record) return sealed_->on_record(body, len);
    // A peer that gave up before it could protect what it says; or somebody who ends connections,
    // which they can do anyway.
    if (head.kind == Kind::bye) return fail("closed by the peer");
    on_corrupt();
}

void Connection::hear_announced(const Head &head, Remote *remote) {
    if (!sealed_) return on_bulk(head, remote);
    shared_.wire->drop(nullptr, remote);
    on_corrupt();
}

void Connection::on_packet(const Head &head, const uint8_t *payload, size_t len) {
    if (!accept(head)) return;
    switch (head.kind) {
    case Kind::eager: on_eager(head, payload, len); break;
    case Kind::part: on_part(payload, len); break;
    case Kind::withdraw: on_withdraw(head); break;
    case Kind::credit:
    case Kind::ping: break;
    case Kind::arrived:
        if (!shared_.completions.reserve(1)) return starve();
        shared_.completions.push({0, 0, 0, head.tag, DTRAIN_OK, DTRAIN_TP_PUT_ARRIVED, 0});
        break;
    case Kind::bye:
        if (!shared_.wire->attr().closes_quietly) say_goodbye(); // the peer waits for it
        if (sealed_ && head.length)
            return fail("the peer got bytes that were changed, left out, repeated or forged",
                        DTRAIN_ERR_CORRUPT);
        on_goodbye();
        break;
    default: return quit("protocol error: a packet of an unknown kind");
    }
    flush();
}

void Connection::on_eager(const Head &head, const uint8_t *payload, size_t len) {
    const uint64_t length = head.length;
    if (arriving_.missing || length < len || (length && !len) || !window_.take(length))
        return quit("protocol error: an eager message that is malformed, out of turn, or larger "
                    "than the window");
    arriving_ = {.tag = head.tag, .length = length, .missing = length};
    arriving_.receive = shared_.receives.match(head.tag);
    if (!arriving_.receive) {
        arriving_.message = shared_.receives.keep(head.tag, length, this);
        if (!arriving_.message) return starve();
    }
    on_bytes(payload, len);
}

void Connection::on_part(const uint8_t *payload, size_t len) {
    if (!len || len > arriving_.missing)
        return quit(
            "protocol error: a part without a message, or with more bytes than are missing");
    on_bytes(payload, len);
}

// Processes bytes of the message that is arriving.
void Connection::on_bytes(const uint8_t *payload, size_t len) {
    arriving_.missing -= len;
    shared_.completions.moved += len;
    if (tp::Receive *receive = arriving_.receive) {
        shared_.copied += receive->into.scatter(payload, len);
        if (arriving_.missing) return;
        shared_.receives.complete(receive, arriving_.tag, arriving_.length);
    } else if (tp::Message *message = arriving_.message) {
        if (len) memcpy(message->data + message->arrived, payload, len);
        shared_.copied += len;
        message->arrived += len;
        if (!arriving_.missing) arriving_ = {};
        return; // credit is given when it is taken
    }
    if (arriving_.missing) return;
    give_credit(arriving_.length);
    arriving_ = {};
}

void Connection::on_bulk(const Head &head, Remote *remote) {
    const bool good = accept(head) && head.kind == Kind::bulk &&
                      head.length <= shared_.wire->attr().bulk_limit && rendezvous_.may_announce();
    if (good) {
        if (tp::Receive *receive = shared_.receives.match(head.tag))
            return fetch(receive, head, remote);
        if (tp::Message *message =
                rendezvous_.keep(shared_.receives, head.tag, head.length, head.id, this)) {
            message->remote = remote;
            return;
        }
    }
    if (good)
        starve();
    else
        quit("protocol error: a bulk message that exceeds the limits");
    carrier_->drop(channel_->link, remote);
}

void Connection::fetch(tp::Receive *receive, const Head &head, Remote *remote) {
    const uint64_t wanted = std::min(head.length, receive->capacity);
    Job *job = wanted ? shared_.jobs.get() : nullptr;
    if (!job) {
        if (wanted)
            shared_.receives.fail(receive, DTRAIN_ERR_NO_MEMORY);
        else
            shared_.receives.complete(receive, head.tag, head.length);
        return carrier_->drop(channel_->link, remote);
    }
    job->kind = Job::Kind::transfer;
    job->connection = this;
    job->tag = head.tag;
    job->length = head.length;
    job->id = head.id;
    job->receive = receive;
    job->memory = receive->into;
    job->memory.truncate(wanted);
    flying_.push_back(job);
    shared_.completions.moved += wanted;
    carrier_->fetch(channel_->link, remote, job);
}

void Connection::on_withdraw(const Head &head) {
    if (tp::Message *message = shared_.receives.take_announced(this, head.id))
        return taken(message, nullptr);
    if (!head.length) return; // it is being fetched, or is over
    for (Job *job = flying_.front(); job; job = JobList::next(job))
        if (job->receive && job->id == head.id) return break_off(job);
}

// The wire returns the memory of an operation.
void Connection::on_done(Job *job, bool ok) {
    flying_.remove(job);
    if (closed_ns_ && !flying_.front()) on_goodbye();
    if (job->whole) return on_part_sent(job, ok);
    if (ok && !job->canceled) return on_arrived(job);
    const dtrain_status_t failure = job->failure == DTRAIN_ERR_PEER ? told() : job->failure;
    finish(job, job->canceled ? DTRAIN_ERR_CANCELED : failure);
}

void Connection::on_part_sent(Job *part, bool ok) {
    Job *message = part->whole;
    shared_.jobs.put(part);
    if (!--message->parts && !message->memory.remaining()) on_done(message, ok);
}

void Connection::on_arrived(Job *job) {
    if (job->kind == Job::Kind::put && job->imm) {
        control({.kind = Kind::arrived, .tag = job->imm});
        flush();
    }
    finish(job, DTRAIN_OK);
}

void Connection::finish(Job *job, dtrain_status_t status) {
    if (job->bulk) rendezvous_.end(job);
    if (job->canceled) withdrawn_--;
    if (job->receive && status == DTRAIN_OK) {
        shared_.receives.complete(job->receive, job->tag, job->length);
    } else if (job->receive) {
        shared_.receives.fail(job->receive, status);
    } else {
        shared_.completions.push(
            {job->cookie, job->length, job->tag, 0, status, completion_of[size_t(job->kind)], 0});
    }
    shared_.jobs.put(job);
    if (queue_.front()) shared_.attention = true; // there may be room for an announcement
}

} // namespace dtrain::rdm
