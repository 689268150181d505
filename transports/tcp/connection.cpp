// How the connection of two devices begins and ends.
// SPDX-License-Identifier: Apache-2.0
#include "tcp/connection.h"

#include <new>

namespace dtrain::tcp {

Connection::Connection(Shared *shared, const DeviceId &peer)
    : Pollable(Kind::connection), ConnectionBase(peer), shared_(*shared) {}

bool Connection::establish(Route route) {
    if (route.guard) {
        records_.reset(new (std::nothrow) Records(std::move(route.guard)));
        if (!records_) return false;
    }
    if (!shared_.poller.add(route.fd.get(), this, EPOLLIN)) return false;
    interest_ = EPOLLIN;
    fd_ = std::move(route.fd);
    write();
    return true;
}

bool Connection::progress() {
    const Read result = read(); // read even if writing failed: what the peer sent counts
    if (result == Read::lost) return false;
    if (broken_) {
        shared_.attention = true;
        return result == Read::more;
    }
    write();
    return true;
}

void Connection::update_interest() {
    const uint32_t wanted = EPOLLIN | (blocked_ ? EPOLLOUT : 0u);
    if (!up() || wanted == interest_) return;
    if (shared_.poller.change(fd_.get(), this, wanted)) interest_ = wanted;
}

void Connection::abandon() {
    // What lacks memory is this process; its operations are told of a loss as usual.
    const dtrain_status_t told = failure_ == DTRAIN_ERR_NO_MEMORY ? DTRAIN_ERR_PEER : failure_;
    if (up()) shared_.poller.remove(fd_.get(), this);
    fd_.reset();
    if (out_send_) finish(std::exchange(out_send_, nullptr), told);
    while (Send *send = queue_.pop_front()) finish(send, told);
    while (Send *send = streams_.pop_front()) finish(send, told);
    while (Send *send = rendezvous_.find_if([](const Send &) { return true; })) {
        rendezvous_.end(send);
        finish(send, told);
    }
    while (Transfer *t = transfers_.find_if([](const Transfer &) { return true; })) finish(t, told);
    in_transfer_ = nullptr;
    tp::Receive *receive = std::exchange(in_receive_, nullptr);
    if (in_message_) receive = std::exchange(in_message_->taken_by, nullptr);
    if (receive) shared_.receives.fail(receive, told);
    shared_.receives.lose(this, [this](const tp::Message &message) {
        if (&message == in_message_) in_message_ = nullptr;
    });
    if (in_message_) shared_.receives.release(in_message_); // it was taken before
    in_message_ = nullptr;
}

void Connection::taken(tp::Message *message, tp::Receive *receive) {
    if (message->announced) {
        rendezvous_.taken();
        if (receive)
            grant(receive, message->tag, message->length, uint32_t(message->id));
        else
            control({FrameKind::grant, 0, 0, 0, uint32_t(message->id), 0});
        shared_.receives.release(message);
    } else if (message != in_message_) {
        deliver(shared_, message, receive);
    } else if (receive) {
        message->taken_by = receive;
    } else {
        drop_arriving();
    }
    write();
}

void Connection::deliver(Shared &shared, tp::Message *message, tp::Receive *receive) {
    if (receive) {
        receive->into.scatter(message->data, message->length);
        shared.receives.complete(receive, message->tag, message->length);
    }
    if (auto *origin = static_cast<Connection *>(message->origin))
        origin->give_credit(message->length);
    shared.receives.release(message);
}

} // namespace dtrain::tcp
