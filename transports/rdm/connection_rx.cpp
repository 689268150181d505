// The connection of two devices: what comes in. Nothing in a head is believed before it is checked.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/connection.h"

namespace dtrain::rdm {
namespace {

constexpr uint32_t completion_of[] = {DTRAIN_TP_SEND, DTRAIN_TP_RECV, DTRAIN_TP_PUT, DTRAIN_TP_GET};

} // namespace

bool Connection::accept(const Head &head) {
    peer_window_ += head.credit;
    if (peer_window_ > window) fail("protocol error: more credit than was used");
    return !broken_;
}

void Connection::on_packet(const Head &head, const uint8_t *payload, size_t len) {
    if (!accept(head)) return;
    switch (head.kind) {
    case Kind::eager: on_eager(head, payload, len); break;
    case Kind::withdraw: on_withdraw(head); break;
    case Kind::credit:
    case Kind::ping: break;
    case Kind::arrived:
        if (!shared_.completions.reserve(1)) return fail("out of memory");
        shared_.completions.push({0, 0, 0, head.tag, DTRAIN_OK, DTRAIN_TP_PUT_ARRIVED, 0});
        break;
    case Kind::bye: return fail("closed by the peer");
    default: return fail("protocol error: a packet of an unknown kind");
    }
    flush();
}

void Connection::on_eager(const Head &head, const uint8_t *payload, size_t len) {
    const uint64_t cost = head.length + tp::Matcher::message_cost;
    if (head.length != len || cost > own_window_)
        return fail("protocol error: a message outside the window");
    own_window_ -= cost;
    shared_.completions.moved += len;
    if (tp::Receive *receive = shared_.matcher.match(head.tag)) {
        shared_.copied += receive->into.scatter(payload, len);
        shared_.completions.push(receive->done(head.tag, len));
        shared_.matcher.release(receive);
        return give_credit(cost);
    }
    tp::Message *message = shared_.matcher.keep(head.tag, len);
    if (!message) return fail("out of memory");
    message->origin = this;
    if (len) memcpy(message->data, payload, len);
    shared_.copied += len;
    message->arrived = len;
}

void Connection::on_bulk(const Head &head, Remote *remote) {
    const bool good = accept(head) && head.kind == Kind::bulk;
    if (good && head.length <= shared_.wire->attr().bulk_limit && announcements_ < announce_limit) {
        if (tp::Receive *receive = shared_.matcher.match(head.tag))
            return fetch(receive, head, remote);
        if (tp::Message *message = shared_.matcher.announce(head.tag, head.length)) {
            announcements_++;
            message->origin = this;
            message->remote = remote;
            message->id = head.id;
            return;
        }
    }
    fail("protocol error: a bulk message outside the limits, or out of memory");
    shared_.wire->drop(channel_->link, remote);
}

void Connection::fetch(tp::Receive *receive, const Head &head, Remote *remote) {
    const uint64_t wanted = std::min(head.length, receive->capacity);
    Job *job = wanted ? shared_.jobs.get() : nullptr;
    if (!job) {
        const bool none = wanted == 0;
        shared_.completions.push(none ? receive->done(head.tag, head.length)
                                      : receive->failed(DTRAIN_ERR_NO_MEMORY));
        shared_.matcher.release(receive);
        return shared_.wire->drop(channel_->link, remote);
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
    shared_.wire->fetch(channel_->link, remote, job);
}

void Connection::on_withdraw(const Head &head) {
    const uint32_t id = head.id;
    const auto withdrawn = [this, id](const tp::Message &m) {
        return m.origin == this && m.announced && m.id == id;
    };
    if (tp::Message *message = shared_.matcher.take_if(withdrawn)) return taken(message, nullptr);
    if (!head.length) return; // it is on its way, or over
    for (Job *job = flying_.front(); job; job = JobList::next(job))
        if (job->receive && job->id == id) return shared_.wire->break_off(job);
}

// The wire gives the memory of an operation back.
void Connection::on_done(Job *job, bool ok) {
    flying_.remove(job);
    if (ok && !job->canceled) return on_arrived(job);
    finish(job, job->canceled ? DTRAIN_ERR_CANCELED : job->failure);
}

void Connection::on_arrived(Job *job) {
    if (job->kind == Job::Kind::put && job->imm) {
        control({.kind = Kind::arrived, .tag = job->imm});
        flush();
    }
    finish(job, DTRAIN_OK);
}

void Connection::finish(Job *job, dtrain_status_t status) {
    if (job->bulk) announced_.remove(job->id);
    if (job->bulk && job->canceled) withdrawn_--;
    if (tp::Receive *receive = job->receive) {
        shared_.completions.push(status == DTRAIN_OK ? receive->done(job->tag, job->length)
                                                     : receive->failed(status));
        shared_.matcher.release(receive);
    } else {
        shared_.completions.push(
            {job->cookie, job->length, job->tag, 0, status, completion_of[size_t(job->kind)], 0});
    }
    shared_.jobs.put(job);
    if (queue_.front()) shared_.attention = true; // there may be room for an announcement
}

} // namespace dtrain::rdm
