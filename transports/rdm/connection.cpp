// How the connection of two devices begins and ends.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/connection.h"

#include <utility>

namespace dtrain::rdm {
namespace {

constexpr const char *closed = "closed by the peer";
constexpr int64_t withdrawal_limit_ns = 30'000'000;
constexpr int64_t unwanted_limit_ns = 5'000'000'000; // for operations that were given up
constexpr int64_t reports_limit_ns = 100'000'000;    // for those of a peer that has closed

} // namespace

Connection::Connection(Shared *shared, const DeviceId &peer)
    : ConnectionBase(peer), shared_(*shared), carrier_(shared->wire),
      part_limit_(shared->part_limit), copy_limit_(shared->copy_limit) {}

Connection::~Connection() {
    if (channel_) shared_.channels.remove(channel_->number);
}

void Connection::establish(Route route) {
    channel_ = std::move(route.channel);
    channel_->handshake = nullptr;
    channel_->connection = this;
    process_ = std::move(route.process);
    if (route.guard) {
        sealed_ = Sealed::make(shared_, *this, *channel_, std::move(route.guard));
        if (!sealed_) return starve(); // nothing is sent, or taken for the peer's, without it
        carrier_ = sealed_.get();
        part_limit_ = copy_limit_ = sealed_->part_limit();
    }
    flush();
}

void Connection::fail(const char *reason, dtrain_status_t failure) {
    if (!broken_) {
        reason_ = reason;
        failure_ = failure;
    }
    broken_ = shared_.attention = true;
}

// Tells the peer, which might not notice by itself: the network has no connections.
void Connection::quit(const char *reason, dtrain_status_t failure) {
    say_goodbye();
    fail(reason, failure);
}

void Connection::on_corrupt() {
    if (broken_) return;
    say_goodbye(true);
    fail("it carried bytes that were changed, left out, repeated or forged", DTRAIN_ERR_CORRUPT);
}

void Connection::on_gap() {
    if (sealed_) return on_corrupt();
    fail("protocol error: packets that are lost or out of order");
}

void Connection::abandon() {
    shared_.receives.lose(this, [this](const tp::Message &message) {
        if (message.announced) carrier_->drop(nullptr, static_cast<Remote *>(message.remote));
    });
    if (arriving_.receive) shared_.receives.fail(arriving_.receive, told());
    arriving_ = {};
    broken_ = true;
    if (sealed_) sealed_->end();
    if (up()) shared_.wire->unlink(channel_->link);
    if (channel_) channel_->link = nullptr;
    while (Job *message = queue_.pop_front())
        finish(message, message->canceled ? DTRAIN_ERR_CANCELED : told());
    process_.reset();
}

void Connection::say_goodbye(bool corrupt) {
    if (!may_send()) return;
    goodbye_ = send_head({.kind = Kind::bye, .length = corrupt}, nullptr) == Sent::now;
}

// What the peer has fetched before may not have been reported yet: reports and packets keep no
// order.
void Connection::on_goodbye() {
    if (!flying_.front()) return fail(closed);
    if (!closed_ns_) closed_ns_ = shared_.host.now_ns();
}

void Connection::tick(int64_t now_ns) {
    if (!up() || broken_) return;
    if (closed_ns_) {
        if (now_ns - closed_ns_ > reports_limit_ns) fail(closed);
        return;
    }
    if (channel_->sent == sent_at_tick_ && control_.empty()) control({.kind = Kind::ping});
    sent_at_tick_ = channel_->sent;
    flush();
    if (withdrawn_ && now_ns - withdrawn_ns_ > withdrawal_limit_ns)
        quit("the memory of a withdrawn operation was not returned in time");
    if (holds_unwanted() && now_ns - unwanted_ns_ > unwanted_limit_ns)
        quit("the peer does not end operations that were given up here");
}

void Connection::withdraw(const Endpoint *endpoint) {
    withdraw_jobs([endpoint](const Job &job) { return job.endpoint == endpoint; });
    if (endpoints.empty()) give_up();
    flush();
}

void Connection::withdraw(uint64_t cookie) {
    if (arriving_.receive && arriving_.receive->cookie == cookie) // the missing bytes are dropped
        shared_.receives.fail(std::exchange(arriving_.receive, nullptr), DTRAIN_ERR_CANCELED);
    withdraw_jobs([cookie](const Job &job) {
        return (job.receive ? job.receive->cookie : job.cookie) == cookie;
    });
    flush();
}

template <class Which> void Connection::withdraw_jobs(const Which &which) {
    const auto is_meant = [&](const Job &job) { return !job.whole && !job.canceled && which(job); };
    for (Job *message = queue_.front(), *next; message; message = next) {
        next = JobList::next(message);
        if (!is_meant(*message)) continue;
        if (message->begun) { // its peer waits for the rest
            withdraw(message);
            continue;
        }
        queue_.remove(message);
        finish(message, DTRAIN_ERR_CANCELED);
    }
    for (Job *job = flying_.front(), *next; job; job = next) {
        next = JobList::next(job);
        if (is_meant(*job)) withdraw(job);
    }
}

// No endpoint uses the connection any more: operations in progress may end, but not take forever.
void Connection::give_up() {
    if (!holds_unwanted()) unwanted_ns_ = shared_.host.now_ns();
    arriving_.unwanted = arriving_.receive != nullptr;
    for (const JobList *list : {&queue_, &flying_})
        for (Job *job = list->front(); job; job = JobList::next(job)) job->unwanted = true;
}

bool Connection::holds_unwanted() const {
    const auto has = [](const JobList &list) {
        Job *job = list.front();
        while (job && !job->unwanted) job = JobList::next(job);
        return job != nullptr;
    };
    return arriving_.unwanted || has(queue_) || has(flying_);
}

void Connection::withdraw(Job *job) {
    job->canceled = true;
    job->endpoint = nullptr;
    if (!withdrawn_++) withdrawn_ns_ = shared_.host.now_ns();
    if (job->bulk) {
        const bool back = carrier_->withdraw(job);
        control({.kind = Kind::withdraw, .id = job->id, .length = back ? 1u : 0u});
        if (back) on_done(job, false);
    } else if (job->receive && (sealed_ || shared_.wire->attr().breaks_off_any_time)) {
        break_off(job);
    } // otherwise the wire returns its memory soon
}

// Both sides may withdraw a message before the wire has reported that it is over.
void Connection::break_off(Job *transfer) {
    if (!std::exchange(transfer->broken_off, true)) carrier_->break_off(transfer);
}

void Connection::taken(tp::Message *message, tp::Receive *receive) {
    if (message == arriving_.message) return take_arriving(receive);
    if (!message->announced) return deliver(shared_, message, receive);
    rendezvous_.taken();
    auto *remote = static_cast<Remote *>(message->remote);
    if (receive)
        fetch(receive,
              {.kind = Kind::bulk,
               .id = uint32_t(message->id),
               .tag = message->tag,
               .length = message->length},
              remote);
    else
        carrier_->drop(channel_->link, remote);
    shared_.receives.release(message);
}

// The missing bytes go directly where they are wanted, or are dropped.
void Connection::take_arriving(tp::Receive *receive) {
    tp::Message *message = std::exchange(arriving_.message, nullptr);
    arriving_.receive = receive;
    if (receive) shared_.copied += receive->into.scatter(message->data, message->arrived);
    shared_.receives.release(message);
}

void Connection::deliver(Shared &shared, tp::Message *message, tp::Receive *receive) {
    if (receive) {
        shared.copied += receive->into.scatter(message->data, message->length);
        shared.receives.complete(receive, message->tag, message->length);
    }
    if (auto *origin = static_cast<Connection *>(message->origin)) {
        origin->give_credit(message->length);
        origin->flush();
    }
    shared.receives.release(message);
}

} // namespace dtrain::rdm
