// SPDX-License-Identifier: Apache-2.0
#include "cluster/driver.h"

#include "wire/frame.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace dtrain::cluster {
namespace {

// Data of epoll entries that are no links.
constexpr uint64_t wake_mark = UINT64_MAX, listener_mark = UINT64_MAX - 1;
constexpr int64_t drain_timeout = 1 * second, leave_timeout = 50 * ms;

Status watch(int epoll, int fd, uint64_t mark) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = mark;
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? DTRAIN_OK
                                                            : fail_errno(errno, "epoll_ctl");
}

} // namespace

Driver::Driver(Settings settings, std::string secret, std::string listen_address)
    : secret_(std::move(secret)), listen_address_(std::move(listen_address)),
      self_(settings.identity.member()), node_(std::move(settings)) {}

Status Driver::open(Rendezvous rendezvous, int64_t now) {
    rendezvous_ = std::move(rendezvous);
    epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
    wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    reserve_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!epoll_ || !wake_ || !reserve_)
        return fail_errno(errno, "descriptors for the control connections (limit: ulimit -n)");
    if (Status s = watch(epoll_.get(), wake_.get(), wake_mark); s != DTRAIN_OK) return s;
    if (!rendezvous_.single())
        if (Status s = rendezvous_.open(listener_); s != DTRAIN_OK) return s;
    if (listener_)
        if (Status s = watch(epoll_.get(), listener_.get(), listener_mark); s != DTRAIN_OK)
            return s;
    run(node_.start(now), now);
    return DTRAIN_OK;
}

int64_t Driver::next_deadline() const {
    int64_t next = node_.next_deadline();
    for (const auto &[link, connection] : connections_)
        if (connection->state() != Connection::State::open)
            next = std::min(next, connection->deadline());
    return next;
}

void Driver::wake() {
    uint64_t one = 1;
    [[maybe_unused]] ssize_t n = write(wake_.get(), &one, sizeof one); // full: readable anyway
}

void Driver::work(int64_t now) {
    epoll_event ready_now[64];
    int n = epoll_wait(epoll_.get(), ready_now, int(std::size(ready_now)), 0);
    for (int i = 0; i < n; i++) {
        uint64_t mark = ready_now[i].data.u64;
        uint64_t ignored;
        if (mark == wake_mark) [[maybe_unused]]
            ssize_t got = read(wake_.get(), &ignored, sizeof ignored);
        else if (mark == listener_mark)
            accept_all(now);
        else
            ready(mark, ready_now[i].events);
    }
    expire(now);
    run({}, now);
    // After the sockets: what has arrived counts as heard before anybody counts as silent.
    if (now >= node_.next_deadline()) run(node_.step(Tick{}, now), now);
}

void Driver::run(Actions actions, int64_t now) {
    for (;;) {
        for (Action &action : actions) perform(action, now);
        encoded_.reset();
        frame_ = std::vector<uint8_t>();
        if (events_.empty()) return;
        Event event = std::move(events_.front());
        events_.pop_front();
        actions = node_.step(event, now);
    }
}

void Driver::perform(Action &action, int64_t now) {
    if (const auto *s = std::get_if<Send>(&action))
        send(*s);
    else if (const auto *c = std::get_if<Close>(&action))
        close(c->link, now);
    else if (const auto *d = std::get_if<Dial>(&action))
        dial(*d, now);
    else if (auto *r = std::get_if<Report>(&action)) {
        if (std::holds_alternative<wire::Roster>(r->message)) rendezvous_.close();
        reports_.push_back(std::move(r->message));
    }
}

void Driver::dial(const Dial &dial, int64_t now) {
    std::vector<SocketAddress> addresses;
    Endpoint endpoint;
    Status s = dial.address.empty() ? rendezvous_.find(addresses)
                                    : parse_endpoint(dial.address, "listener", endpoint);
    if (s == DTRAIN_OK && !dial.address.empty()) s = resolve(endpoint, addresses);
    Fd fd;
    if (s == DTRAIN_OK) // a name's addresses take turns
        s = begin_connect(addresses[size_t(dial.link / 4) % addresses.size()], fd);
    if (s != DTRAIN_OK) {
        bool refused = s == DTRAIN_ERR_NOT_FOUND && !dial.address.empty();
        events_.push_back(DialFailed{dial.link, s, refused, error_text()});
        return;
    }
    add(dial.link,
        std::make_unique<Connection>(std::move(fd), wire::Handshake::Side::dialler, secret_, self_,
                                     dial.member, now + wire::handshake_timeout));
}

void Driver::send(const Send &send) {
    auto at = connections_.find(send.link);
    if (at == connections_.end()) return; // it broke; the event is on its way
    if (send.message != encoded_) {
        frame_.clear();
        wire::append_frame(*send.message, frame_);
        encoded_ = send.message;
    }
    Status s = at->second->send(frame_);
    if (s != DTRAIN_OK)
        broken(send.link, s);
    else
        update_interest(send.link, *at->second);
}

void Driver::close(Link link, int64_t now) {
    auto at = connections_.find(link);
    if (at == connections_.end()) return;
    Connection &connection = *at->second;
    if (connection.state() != Connection::State::open || !connection.wants_to_write())
        return remove(link);
    connection.drain(now + drain_timeout);
}

void Driver::accept_all(int64_t now) {
    for (size_t i = 0; i < wire::max_strangers; i++) {
        Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!fd && (errno == EMFILE || errno == ENFILE)) {
            // Without a free descriptor it would stay readable for ever: take it and close it.
            reserve_.reset();
            Fd victim(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            victim.reset();
            reserve_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
            return;
        }
        if (!fd && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (!fd) return;
        prepare_accepted(fd.get());
        drop_oldest_stranger();
        add(next_accepted_, std::make_unique<Connection>(
                                std::move(fd), wire::Handshake::Side::listener, secret_, self_,
                                wire::Handshake::anybody, now + wire::handshake_timeout));
        next_accepted_ += 2;
    }
}

void Driver::drop_oldest_stranger() {
    size_t strangers = 0;
    Link oldest = 0;
    for (const auto &[link, connection] : connections_) {
        if (connection->dialling() || connection->state() != Connection::State::handshaking)
            continue;
        if (strangers++ == 0) oldest = link; // numbers ascend
    }
    if (strangers >= wire::max_strangers) remove(oldest);
}

void Driver::add(Link link, std::unique_ptr<Connection> connection) {
    epoll_event event{};
    event.events = connection->wants_to_write() ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.u64 = link;
    int added = epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection->fd(), &event);
    connections_[link] = std::move(connection);
    if (added != 0) broken(link, fail_errno(errno, "epoll_ctl"));
}

void Driver::remove(Link link) { // closing the descriptor takes it out of epoll
    connections_.erase(link);
}

void Driver::update_interest(Link link, const Connection &connection) {
    epoll_event event{};
    event.events = connection.wants_to_write() ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.u64 = link;
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd(), &event);
}

void Driver::ready(Link link, uint32_t events) {
    auto at = connections_.find(link);
    if (at == connections_.end()) return; // closed by an earlier event of this round
    Connection &connection = *at->second;
    Connection::State before = connection.state();
    std::vector<wire::Message> messages;
    Status s = DTRAIN_OK;
    if (events & EPOLLOUT) s = connection.ready_to_write();
    if (s == DTRAIN_OK && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
        s = connection.ready_to_read(messages);
    if (connection.state() == Connection::State::open && before != Connection::State::open)
        opened(link, connection);
    for (wire::Message &message : messages) events_.push_back(Received{link, std::move(message)});
    bool drained =
        connection.state() == Connection::State::draining && !connection.wants_to_write();
    if (s != DTRAIN_OK)
        broken(link, s);
    else if (drained)
        remove(link);
    else
        update_interest(link, connection);
}

void Driver::opened(Link link, Connection &connection) {
    Endpoint local = local_endpoint(connection.fd()), remote = remote_endpoint(connection.fd());
    if (!connection.dialling()) {
        events_.push_back(Accepted{link, connection.peer(), remote.host, local.host});
        return;
    }
    // A member that cannot listen is no candidate for taking over; nothing else needs it.
    Status s = listener_ ? DTRAIN_OK : listen_beside(connection.fd());
    Endpoint own = s == DTRAIN_OK ? local_endpoint(listener_.get()) : Endpoint{};
    events_.push_back(Dialled{link, s == DTRAIN_OK ? join_endpoint(own.host, own.port) : ""});
}

// Opens the own listener, at the address from which the coordinator is reached.
Status Driver::listen_beside(int fd) {
    std::string host = listen_address_.empty() ? local_endpoint(fd).host : listen_address_;
    std::vector<SocketAddress> addresses;
    Fd listener;
    if (Status s = resolve({host, "0"}, addresses); s != DTRAIN_OK) return s;
    if (Status s = listen_on(addresses[0], listener); s != DTRAIN_OK) return s;
    if (Status s = watch(epoll_.get(), listener.get(), listener_mark); s != DTRAIN_OK) return s;
    listener_ = std::move(listener);
    return DTRAIN_OK;
}

void Driver::broken(Link link, Status status) {
    auto at = connections_.find(link);
    if (at == connections_.end()) return;
    std::string why = error_text();
    Connection &connection = *at->second;
    using State = Connection::State;
    if (connection.state() == State::open) {
        events_.push_back(Closed{link, why});
    } else if (connection.dialling() && connection.state() != State::draining) {
        bool refused = status == DTRAIN_ERR_NOT_FOUND;
        if (status == DTRAIN_ERR_PEER) why = "it closed the connection during the handshake";
        events_.push_back(DialFailed{link, status, refused, why});
    } else if (connection.state() == State::handshaking && status != DTRAIN_ERR_PEER) {
        events_.push_back(
            TurnedAway{connection.peer(), remote_endpoint(connection.fd()).host, why});
    }
    remove(link);
}

void Driver::expire(int64_t now) {
    std::vector<Link> late;
    for (const auto &[link, connection] : connections_)
        if (connection->state() != Connection::State::open && now >= connection->deadline())
            late.push_back(link);
    for (Link link : late) {
        bool connecting = connections_[link]->state() == Connection::State::connecting;
        broken(link, fail(DTRAIN_ERR_TIMEOUT,
                          connecting ? "no answer to connecting" : "no answer in the handshake"));
    }
}

Status Driver::post(wire::Message message, int64_t now) {
    Actions actions;
    Status s = node_.post(std::move(message), now, actions);
    run(std::move(actions), now);
    return s;
}

Status Driver::shrink(wire::ShrinkRequest request, uint32_t &attempt, int64_t now) {
    Actions actions;
    Status s = node_.shrink(std::move(request), attempt, now, actions);
    run(std::move(actions), now);
    return s;
}

void Driver::leave(int64_t now) {
    // First: who hears that this member leaves and still finds it listening would wait for it.
    listener_.reset();
    rendezvous_.close();
    for (Action &action : node_.leave())
        if (!std::holds_alternative<Close>(action)) perform(action, now); // all are closed here
    const std::string text = error_text(); // perhaps why this member leaves
    wind_up(now + leave_timeout);
    set_error_text(text.c_str());
    connections_.clear();
    events_.clear();
    reports_.clear();
}

void Driver::wind_up(int64_t until) {
    using State = Connection::State;
    std::erase_if(connections_, [](const auto &one) {
        return one.second->state() != State::open && one.second->state() != State::draining;
    });
    std::vector<pollfd> fds(connections_.size(), pollfd{-1, 0, POLLIN});
    for (;;) {
        size_t i = 0;
        std::erase_if(connections_, [&](const auto &one) {
            return fds[i++].revents != 0 && one.second->wind_up();
        });
        fds.clear();
        for (const auto &[link, connection] : connections_) {
            const int events = POLLIN | (connection->wants_to_write() ? POLLOUT : 0);
            fds.push_back({connection->fd(), short(events), 0});
        }
        const int64_t left = until - monotonic_clock().now_ns();
        if (fds.empty() || left <= 0) return;
        const int ready = poll(fds.data(), fds.size(), int(left / ms) + 1);
        if (ready == 0 || (ready < 0 && errno != EINTR)) return;
    }
}

} // namespace dtrain::cluster
