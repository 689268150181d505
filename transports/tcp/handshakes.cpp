// The handshakes in progress on a device: incoming connections, attempts to connect, deadlines.
// SPDX-License-Identifier: Apache-2.0
#include "tcp/handshakes.h"
#include "tcp/connection.h"
#include "tcp/socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <sys/timerfd.h>

namespace dtrain::tcp {

Handshakes::~Handshakes() {
    while (Handshake *handshake = silent_.front()) forget(handshake);
    while (Handshake *handshake = spoken_.front()) forget(handshake);
    while (Handshake *handshake = accepted_.front()) forget(handshake);
    while (Handshake *handshake = attempts_.front()) forget(handshake);
    while (Handshake *handshake = trials_.front()) forget(handshake);
}

dtrain_status_t Handshakes::open(SocketAddress *socket, const DeviceId &own) {
    own_ = own;
    timer_ = Fd(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    if (!timer_ || !acceptor_.open() || !poller_.add(timer_.get(), &timer_key_, EPOLLIN))
        return host_.fail(DTRAIN_ERR_IO, "tcp: cannot watch a timer: %s", strerror(errno));
    return listen(socket);
}

void Handshakes::connect(Connection *connection) {
    const Address &peer = connection->targets;
    if (connection->target >= peer.count)
        return owner_.failed(connection, DTRAIN_ERR_PEER, "none of its addresses leads to it");
    const SocketAddress &socket = peer.sockets[connection->target++];
    const bool trial = connection->target < peer.count;
    Fd fd;
    const int error = start_connect(socket, &fd);
    auto *handshake = new (std::nothrow)
        Handshake(std::move(fd), Role::initiator, Hello::make(host_, own_, peer.id),
                  host_.now_ns() + (trial ? trial_ns : deadline_ns));
    if (!handshake) return owner_.failed(connection, DTRAIN_ERR_NO_MEMORY, "out of memory");
    handshake->connection = connection;
    handshake->trial = trial;
    add(handshake, EPOLLOUT);
    if (error) give_up(handshake, handshake->fail_errno(-error), handshake->reason());
}

Handshakes::List &Handshakes::list_of(const Handshake &handshake) {
    if (handshake.accepted()) return accepted_;
    if (handshake.role() == Role::responder) return handshake.spoken ? spoken_ : silent_;
    return handshake.trial ? trials_ : attempts_;
}

bool Handshakes::is_guest(const Handshake &handshake) {
    return handshake.accepted() && handshake.deadline_ns() != INT64_MAX;
}

void Handshakes::add(Handshake *handshake, uint32_t events) {
    const bool stranger = handshake->role() == Role::responder;
    list_of(*handshake).push_back(handshake);
    if (stranger)
        stranger_count_++;
    else
        handshake->connection->handshake = handshake;
    if (handshake->fd() >= 0) poller_.add(handshake->fd(), handshake, events);
    if (!timer_running_) start_timer(trial_ns);
}

void Handshakes::forget(Handshake *handshake) {
    const bool stranger = handshake->role() == Role::responder;
    list_of(*handshake).remove(handshake);
    guest_count_ -= is_guest(*handshake);
    if (stranger)
        stranger_count_ -= !handshake->accepted();
    else
        handshake->connection->handshake = nullptr;
    if (handshake->fd() >= 0) poller_.remove(handshake->fd(), handshake);
    delete handshake;
}

void Handshakes::dispatch(Pollable *who) {
    if (who == &acceptor_)
        on_listener();
    else if (who == &timer_key_)
        on_timer();
    else
        on_handshake(static_cast<Handshake *>(who));
}

void Handshakes::on_listener() {
    for (uint32_t i = 0; i < max_accepts; i++) {
        bool more;
        Fd fd = acceptor_.accept(&more);
        if (!more) break;
        if (!fd) continue;
        auto *handshake = new (std::nothrow)
            Handshake(std::move(fd), Role::responder, Hello::make(host_, own_, {}),
                      host_.now_ns() + deadline_ns);
        if (!handshake) return;
        if (stranger_count_ >= protocol::max_strangers)
            give_up(silent_.empty() ? spoken_.front() : silent_.front(), DTRAIN_ERR_PEER,
                    "too many unauthenticated connections at once");
        add(handshake, EPOLLIN);
        on_handshake(handshake); // most that ever say something have said it
    }
    if (acceptor_.is_paused() && !timer_running_) start_timer(deadline_ns);
}

void Handshakes::note_spoken(Handshake *handshake) {
    if (handshake->role() != Role::responder || handshake->spoken || !handshake->introduced())
        return;
    silent_.remove(handshake);
    handshake->spoken = true;
    spoken_.push_back(handshake);
}

void Handshakes::on_handshake(Handshake *handshake) {
    const bool connecting = handshake->connecting();
    Handshake::Step step = handshake->step(host_);
    note_spoken(handshake);
    if (step == Handshake::Step::authentic) step = answer(handshake);
    switch (step) {
    case Handshake::Step::authentic:
    case Handshake::Step::wait:
        if (connecting) poller_.change(handshake->fd(), handshake, EPOLLIN);
        break;
    // The other connection is established soon, or the deadline passes.
    case Handshake::Step::duplicate: {
        poller_.remove(handshake->fd(), handshake);
        handshake->take_fd();
        break;
    }
    case Handshake::Step::done: {
        Connection *connection = handshake->connection;
        const DeviceId peer = handshake->peer();
        poller_.remove(handshake->fd(), handshake);
        Route route{handshake->take_fd(), handshake->take_guard()};
        forget(handshake);
        owner_.joined(connection, peer, std::move(route));
        break;
    }
    case Handshake::Step::failed:
        give_up(handshake, handshake->status(), handshake->reason());
        break;
    }
}

Handshake::Step Handshakes::answer(Handshake *handshake) {
    list_of(*handshake).remove(handshake);
    const Handshake::Step step = handshake->answer(owner_.admit(handshake->peer()));
    list_of(*handshake).push_back(handshake);
    if (!handshake->accepted()) return step;
    stranger_count_--;
    notice_loss(handshake->fd()); // it may have no deadline
    const bool expected = owner_.is_expected(handshake->peer());
    handshake->wait_until(expected ? INT64_MAX : host_.now_ns() + tp::guest_patience_ns);
    guest_count_ += !expected;
    make_way(handshake->peer());
    if (guest_count_ <= tp::most_guests) return step;
    Handshake *oldest = accepted_.front();
    while (!is_guest(*oldest)) oldest = List::next(oldest);
    give_up(oldest, DTRAIN_ERR_PEER, "too many unconfirmed connections at once");
    return step;
}

void Handshakes::give_up(Handshake *handshake, dtrain_status_t status, const char *reason) {
    Connection *connection = handshake->connection;
    const bool trial = handshake->trial, accepted = handshake->accepted();
    const DeviceId peer = handshake->peer();
    forget(handshake);
    if (connection && trial) {
        const SocketAddress &socket = connection->targets.sockets[connection->target - 1];
        host_.log(DTRAIN_LOG_INFO, "tcp: %s: %s; trying the peer's next address",
                  text_of(socket).text, reason);
        connect(connection);
    } else if (connection) {
        owner_.failed(connection, status, reason);
    } else {
        refusals_.ended(status, reason);
        if (accepted) try_again(peer, reason);
    }
}

Handshake *Handshakes::attempt_at(const DeviceId &peer) const {
    for (const List *list : {&attempts_, &trials_})
        for (Handshake *one = list->front(); one; one = List::next(one))
            if (one->connection->peer() == peer) return one;
    return nullptr;
}

// The peer may count on its connection now, so that of this side must not be established.
void Handshakes::make_way(const DeviceId &peer) {
    Handshake *own = peer == own_ ? nullptr : attempt_at(peer);
    if (!own || own->fd() < 0) return;
    poller_.remove(own->fd(), own);
    own->take_fd();
}

// The peer has not confirmed the connection for which this side made way.
void Handshakes::try_again(const DeviceId &peer, const char *reason) {
    Handshake *own = peer == own_ ? nullptr : attempt_at(peer);
    if (own && own->fd() < 0) give_up(own, DTRAIN_ERR_PEER, reason);
}

void Handshakes::on_timer() {
    uint64_t expirations;
    if (read(timer_.get(), &expirations, sizeof expirations) < 0) return;
    timer_running_ = false;
    acceptor_.resume();
    const int64_t now = host_.now_ns();
    int64_t next = INT64_MAX;
    // Not in the order of their deadlines: who is silent for long may speak at last.
    for (List *list : {&spoken_, &accepted_})
        for (Handshake *one = list->front(), *after; one; one = after) {
            after = List::next(one);
            if (one->deadline_ns() <= now)
                give_up(one, DTRAIN_ERR_PEER, one->timeout_reason());
            else
                next = std::min(next, one->deadline_ns());
        }
    for (List *list : {&silent_, &attempts_, &trials_}) {
        Handshake *oldest;
        while ((oldest = list->front()) && oldest->deadline_ns() <= now)
            give_up(oldest, DTRAIN_ERR_PEER, oldest->timeout_reason());
        if (oldest && oldest->deadline_ns() < next) next = oldest->deadline_ns();
    }
    if (next != INT64_MAX) start_timer(std::min(next - now, trial_ns)); // others may come earlier
}

void Handshakes::start_timer(int64_t ns) {
    itimerspec when{};
    when.it_value = {ns / 1'000'000'000, ns % 1'000'000'000};
    timerfd_settime(timer_.get(), 0, &when, nullptr);
    timer_running_ = true;
}

} // namespace dtrain::tcp
