// Connections before they are trusted: the listening socket, attempts to connect, and deadlines.
// SPDX-License-Identifier: Apache-2.0
#include "tcp/lobby.h"
#include "tcp/connection.h"
#include "tcp/socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/timerfd.h>

namespace dtrain::tcp {
namespace {

Fd open_reserve() { return Fd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

} // namespace

Lobby::~Lobby() {
    while (Handshake *handshake = strangers_.front()) forget(handshake);
    while (Handshake *handshake = attempts_.front()) forget(handshake);
    while (Handshake *handshake = trials_.front()) forget(handshake);
}

dtrain_status_t Lobby::open(SocketAddress *socket, const DeviceId &own) {
    own_ = own;
    timer_ = Fd(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    reserve_ = open_reserve();
    if (!timer_ || !reserve_ || !poller_.add(timer_.get(), &timer_key_, EPOLLIN))
        return host_.fail(DTRAIN_ERR_IO, "tcp: cannot watch a timer: %s", strerror(errno));
    return listen(socket);
}

dtrain_status_t Lobby::listen(SocketAddress *socket) {
    Fd fresh;
    const dtrain_status_t status = listen_on(host_, socket, &fresh);
    if (status != DTRAIN_OK) return status;
    if (listener_) poller_.remove(listener_.get(), &listener_key_);
    listener_ = std::move(fresh);
    if (!poller_.add(listener_.get(), &listener_key_, EPOLLIN))
        return host_.fail(DTRAIN_ERR_IO, "tcp: cannot watch the listening socket: %s",
                          strerror(errno));
    return DTRAIN_OK;
}

void Lobby::connect(Connection *connection) {
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

Lobby::Handshakes &Lobby::list_of(const Handshake &handshake) {
    if (handshake.role() == Role::responder) return strangers_;
    return handshake.trial ? trials_ : attempts_;
}

void Lobby::add(Handshake *handshake, uint32_t events) {
    const bool stranger = handshake->role() == Role::responder;
    list_of(*handshake).push_back(handshake);
    if (stranger)
        stranger_count_++;
    else
        handshake->connection->handshake = handshake;
    if (handshake->fd() >= 0) poller_.add(handshake->fd(), handshake, events);
    if (!timer_running_) start_timer(trial_ns);
}

void Lobby::forget(Handshake *handshake) {
    const bool stranger = handshake->role() == Role::responder;
    list_of(*handshake).remove(handshake);
    if (stranger)
        stranger_count_--;
    else
        handshake->connection->handshake = nullptr;
    if (handshake->fd() >= 0) poller_.remove(handshake->fd(), handshake);
    delete handshake;
}

void Lobby::dispatch(Pollable *who) {
    if (who == &listener_key_)
        on_listener();
    else if (who == &timer_key_)
        on_timer();
    else
        on_handshake(static_cast<Handshake *>(who));
}

void Lobby::on_listener() {
    for (uint32_t i = 0; i < max_accepts; i++) {
        Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!fd) {
            if (!on_accept_error(errno)) return;
            continue;
        }
        auto *handshake = new (std::nothrow)
            Handshake(std::move(fd), Role::responder, Hello::make(host_, own_, {}),
                      host_.now_ns() + deadline_ns);
        if (!handshake) return;
        if (stranger_count_ >= max_strangers)
            give_up(strangers_.front(), DTRAIN_ERR_PEER,
                    "too many unauthenticated connections at once");
        add(handshake, EPOLLIN);
    }
}

// True: there may be more to accept. Without a free descriptor, the reserve descriptor is used to
// accept the incoming connection and close it; if even that fails, the listener is not watched for
// a while. Otherwise the listener would stay readable, and threads that wait for the device would
// spin.
bool Lobby::on_accept_error(int error) {
    if (error == ECONNABORTED || error == EINTR) return true;
    if (error != EMFILE && error != ENFILE) return false;
    reserve_.reset();
    Fd refused(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const bool nobody = !refused && errno == EAGAIN; // the first error hid it
    if (!nobody) log_stranger("no file descriptors left (raise the limit on open files)");
    const bool more = bool(refused);
    refused.reset();
    reserve_ = open_reserve();
    if (reserve_ && (more || nobody)) return more;
    paused_ = poller_.change(listener_.get(), &listener_key_, 0);
    if (!timer_running_) start_timer(deadline_ns);
    return false;
}

void Lobby::on_handshake(Handshake *handshake) {
    const bool connecting = handshake->connecting();
    Handshake::Step step = handshake->step(host_);
    if (step == Handshake::Step::authentic)
        step = handshake->answer(owner_.admit(handshake->peer()));
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
        Fd fd = handshake->take_fd();
        forget(handshake);
        owner_.joined(connection, peer, std::move(fd));
        break;
    }
    case Handshake::Step::failed:
        give_up(handshake, handshake->status(), handshake->reason());
        break;
    }
}

void Lobby::give_up(Handshake *handshake, dtrain_status_t status, const char *reason) {
    Connection *connection = handshake->connection;
    const bool trial = handshake->trial;
    forget(handshake);
    if (connection && trial) {
        const SocketAddress &socket = connection->targets.sockets[connection->target - 1];
        host_.log(DTRAIN_LOG_INFO, "tcp: %s: %s; trying the peer's next address",
                  text_of(socket).text, reason);
        connect(connection);
    } else if (connection) {
        owner_.failed(connection, status, reason);
    } else if (status == DTRAIN_ERR_PEER) // both sides connected at once, or the peer went away
        host_.log(DTRAIN_LOG_DEBUG, "tcp: an incoming connection ended: %s", reason);
    else
        log_stranger(reason);
}

void Lobby::on_timer() {
    uint64_t expirations;
    if (read(timer_.get(), &expirations, sizeof expirations) < 0) return;
    timer_running_ = false;
    if (paused_) paused_ = !poller_.change(listener_.get(), &listener_key_, EPOLLIN);
    const int64_t now = host_.now_ns();
    int64_t next = INT64_MAX;
    for (Handshakes *list : {&strangers_, &attempts_, &trials_}) {
        Handshake *oldest;
        while ((oldest = list->front()) && oldest->deadline_ns() <= now)
            give_up(oldest, DTRAIN_ERR_PEER, oldest->timeout_reason());
        if (oldest && oldest->deadline_ns() < next) next = oldest->deadline_ns();
    }
    if (next != INT64_MAX) start_timer(std::min(next - now, trial_ns)); // others may come earlier
}

void Lobby::start_timer(int64_t ns) {
    itimerspec when{};
    when.it_value = {ns / 1'000'000'000, ns % 1'000'000'000};
    timerfd_settime(timer_.get(), 0, &when, nullptr);
    timer_running_ = true;
}

void Lobby::log_stranger(const char *reason) {
    refused_++;
    const int64_t now = host_.now_ns();
    if (now - last_log_ns_ < log_interval_ns) return;
    host_.log(DTRAIN_LOG_WARN, "tcp: refused %llu incoming connection(s), the last one: %s",
              static_cast<unsigned long long>(refused_), reason);
    last_log_ns_ = now;
    refused_ = 0;
}

} // namespace dtrain::tcp
