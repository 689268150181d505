// Turns the readiness of sockets into events for the node, and performs the node's actions.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/join/driver.h"

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

// Data of the epoll entries that are not links.
constexpr uint64_t wake_mark = UINT64_MAX, listener_mark = UINT64_MAX - 1,
                   door_mark = UINT64_MAX - 2;
// Connections that are accepted before the others are served again.
constexpr size_t accepts_at_once = 64;
// In a crowd: how often it is looked at, rather than once for each of them.
constexpr int64_t crowd_interval = 1 * ms;
constexpr int64_t drain_timeout = 1 * second, leave_timeout = 50 * ms;
// For the door: how long it may be another process's, how often it is tried, and how long the
// resolver may take.
constexpr int64_t door_patience = 10 * second, door_interval = 100 * ms, door_lookup = 500 * ms;

// Number of an attempt: the number of its Dial combined with its index; odd, as a Dial's.
constexpr int attempt_shift = 48;
Link attempt_of(Link dial, size_t number) { return dial | Link(number) << attempt_shift; }
Link dial_of(Link attempt) { return attempt & ((Link{1} << attempt_shift) - 1); }
size_t number_of(Link attempt) { return size_t(attempt >> attempt_shift); }

Status watch(int epoll, int fd, uint64_t mark) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = mark;
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? DTRAIN_OK
                                                            : fail_errno(errno, "epoll_ctl");
}

} // namespace

Driver::Driver(Settings settings, wire::Credentials own, std::string listen_address, Log *log)
    : own_(std::move(own)), listen_address_(std::move(listen_address)),
      self_(settings.identity.member()), join_deadline_(settings.join_deadline),
      identity_(settings.identity), log_(log), node_(std::move(settings)),
      strangers_(size_t(identity_.members())) {}

Status Driver::open(Rendezvous rendezvous, Fd listener, int64_t now) {
    rendezvous_ = std::move(rendezvous);
    listener_ = std::move(listener);
    epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
    wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    reserve_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!epoll_ || !wake_ || !reserve_)
        return fail_errno(errno, "descriptors for the control connections (limit: ulimit -n)");
    if (Status s = watch(epoll_.get(), wake_.get(), wake_mark); s != DTRAIN_OK) return s;
    if (!rendezvous_.single())
        if (Status s = rendezvous_.open(join_deadline_, listener_); s != DTRAIN_OK) return s;
    if (listener_)
        if (Status s = watch(epoll_.get(), listener_.get(), listener_mark); s != DTRAIN_OK)
            return s;
    run(node_.start(now), now);
    return DTRAIN_OK;
}

int64_t Driver::next_deadline() const {
    int64_t next = node_.next_deadline();
    next = std::min({next, door_at_, accept_at_});
    for (const auto &[link, connection] : connections_)
        if (connection->state() != Connection::State::open)
            next = std::min({next, connection->deadline(), connection->again_at()});
    for (const auto &[link, dial] : dials_) next = std::min(next, dial.next_deadline());
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
            accept_some(listener_.get(), rendezvous_.meeting(), now);
        else if (mark == door_mark)
            accept_some(door_.fd(), door_.meeting(), now);
        else
            ready(mark, ready_now[i].events, now);
    }
    if (now >= accept_at_) accept_later(now);
    expire(now);
    if (now >= door_at_) try_door(now);
    run({}, now);
    // After the sockets: messages that have arrived are processed before any member counts as
    // silent.
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
        actions = node_.step(std::move(event), now);
    }
}

void Driver::perform(Action &action, int64_t now) {
    if (const auto *s = std::get_if<Send>(&action))
        send(*s, now);
    else if (const auto *c = std::get_if<Close>(&action))
        close(c->link, now);
    else if (const auto *d = std::get_if<Dial>(&action))
        dial(*d, now);
    else if (auto *r = std::get_if<Report>(&action)) {
        if (std::holds_alternative<wire::Roster>(r->message)) formed();
        reports_.push_back(std::move(r->message));
    } else if (std::holds_alternative<OpenDoor>(action)) {
        open_door(Fd(), now);
    }
}

// The rendezvous of an elastic job stays, for newcomers.
void Driver::formed() {
    if (!identity_.elastic) return rendezvous_.close();
    if (rendezvous_.note_formed() != DTRAIN_OK && log_ != nullptr)
        log_->write(DTRAIN_LOG_WARN, "the job has formed, but its launcher cannot know: %s",
                    error_text());
}

void Driver::open_door(Fd taken, int64_t now) {
    door_until_ = now + door_patience;
    if (taken && door_.open(identity_, listen_address_, std::move(taken), now) == DTRAIN_OK &&
        watch(epoll_.get(), door_.fd(), door_mark) == DTRAIN_OK)
        return;
    try_door(now);
}

void Driver::try_door(int64_t now) {
    door_at_ = INT64_MAX;
    Status s = door_.open(identity_, listen_address_, Fd(), now + door_lookup);
    if (s == DTRAIN_OK) s = watch(epoll_.get(), door_.fd(), door_mark);
    if (s == DTRAIN_OK) return;
    door_.close();
    if (s == DTRAIN_ERR_BUSY && now < door_until_) {
        door_at_ = now + door_interval;
    } else if (log_ != nullptr) {
        log_->write(DTRAIN_LOG_WARN,
                    "this process coordinates the job now, but newcomers cannot find it: %s",
                    error_text());
    }
}

Status Driver::listen(Fd &out) {
    const std::string host = listener_ ? local_endpoint(listener_.get()).host : "::";
    std::vector<SocketAddress> addresses;
    if (host == "::" || host == "0.0.0.0") return listen_everywhere("0", out);
    Status s = resolve_numeric({host, "0"}, addresses);
    return s == DTRAIN_OK ? listen_on(addresses[0], out) : s;
}

Fd Driver::share_listener() const {
    return listener_ ? Fd(fcntl(listener_.get(), F_DUPFD_CLOEXEC, 0)) : Fd();
}

Fd Driver::release_door() {
    Fd out = door_.is_open()                           ? door_.release()
             : self_ == 0 && identity_.generation == 0 ? std::move(listener_)
                                                       : Fd();
    if (out) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, out.get(), nullptr);
    return out;
}

void Driver::dial(const Dial &dial, int64_t now) {
    std::vector<SocketAddress> addresses;
    if (Status s = find(dial.address, addresses); s != DTRAIN_OK) {
        events_.push_back(DialFailed{dial.link, s, false, error_text()});
        return;
    }
    dials_.try_emplace(dial.link, std::move(addresses), dial.member);
    advance(dial.link, now);
}

Status Driver::find(const std::string &address, std::vector<SocketAddress> &out) {
    if (address.empty()) return rendezvous_.find(join_deadline_, out);
    Place place;
    Status s = Place::parse(address, "listener", place);
    return s == DTRAIN_OK ? place.candidates(out) : s;
}

void Driver::advance(Link link, int64_t now) {
    for (;;) {
        auto dial = dials_.find(link);
        if (dial == dials_.end()) return;
        const SocketAddress *candidate = dial->second.next(now);
        if (candidate == nullptr) break;
        Fd fd;
        if (Status s = begin_connect(*candidate, fd); s != DTRAIN_OK) {
            dial->second.failed(endpoint_of(*candidate), s, error_text());
            continue;
        }
        auto attempt = std::make_unique<Connection>(
            std::move(fd), wire::Handshake::Side::dialler, own_, self_, dial->second.member(),
            now + wire::handshake_timeout, rendezvous_.meeting());
        attempt->set_where(endpoint_of(*candidate), now);
        const Link number = attempt_of(link, dial->second.begun());
        pollfd connected{attempt->fd(), POLLOUT, 0};
        connections_[number] = std::move(attempt);
        watch_connection(number, now);
        // At once, as over the loopback: the peer may have many others to listen to.
        if (poll(&connected, 1, 0) > 0) ready(number, EPOLLOUT, now);
    }
    auto dial = dials_.find(link);
    if (!dial->second.over()) return;
    events_.push_back(dial->second.outcome(link));
    dials_.erase(dial);
}

// Makes this attempt the connection; the other attempts are given up.
Link Driver::settle(Link attempt) {
    const Link link = dial_of(attempt);
    auto node = connections_.extract(attempt);
    std::erase_if(connections_,
                  [&](const auto &one) { return one.first != link && dial_of(one.first) == link; });
    node.key() = link;
    connections_.insert(std::move(node));
    dials_.erase(link);
    return link;
}

void Driver::send(const Send &send, int64_t now) {
    auto at = connections_.find(send.link);
    if (at == connections_.end()) return; // it broke; the event will follow
    if (send.message != encoded_) {
        frame_.clear();
        wire::append_frame(*send.message, frame_);
        encoded_ = send.message;
    }
    const bool wanted = at->second->wants_to_write();
    Status s = at->second->send(frame_);
    if (s != DTRAIN_OK)
        broken(send.link, s, now);
    else if (at->second->wants_to_write() != wanted)
        update_interest(send.link, *at->second);
}

void Driver::close(Link link, int64_t now) {
    if (dials_.erase(link) > 0)
        std::erase_if(connections_, [&](const auto &one) { return dial_of(one.first) == link; });
    auto at = connections_.find(link);
    if (at == connections_.end()) return;
    Connection &connection = *at->second;
    if (connection.state() != Connection::State::open || !connection.wants_to_write())
        return remove(link);
    connection.drain(now + drain_timeout);
}

void Driver::accept_some(int listener, uint16_t meeting, int64_t now) {
    for (size_t i = 0; i < accepts_at_once; i++) {
        Fd fd = accept_one(listener);
        if (!fd && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (!fd) return;
        if (strangers_.full()) remove(strangers_.to_give_way());
        take_in(std::move(fd), meeting, now);
    }
    if (accept_at_ != INT64_MAX || !strangers_.full()) return;
    heed_listeners(false);
    accept_at_ = now + crowd_interval;
}

void Driver::heed_listeners(bool heed) {
    epoll_event event{};
    event.events = heed ? uint32_t{EPOLLIN} : 0;
    for (const auto &[fd, mark] :
         {std::pair{listener_.get(), listener_mark}, {door_.fd(), door_mark}}) {
        event.data.u64 = mark;
        if (fd >= 0) epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
    }
}

void Driver::accept_later(int64_t now) {
    accept_at_ = now + crowd_interval;
    if (listener_) accept_some(listener_.get(), rendezvous_.meeting(), now);
    if (door_.is_open()) accept_some(door_.fd(), door_.meeting(), now);
    if (strangers_.full()) return;
    accept_at_ = INT64_MAX;
    heed_listeners(true);
}

// Without a free descriptor the listener would stay readable forever.
Fd Driver::accept_one(int listener) {
    for (;;) {
        Fd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd || (errno != EMFILE && errno != ENFILE)) return fd;
        if (const Link silent = strangers_.oldest_silent(); silent != 0) {
            remove(silent);
            continue;
        }
        // Accepts one connection with the reserve descriptor, and closes it.
        reserve_.reset();
        Fd victim(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
        victim.reset();
        reserve_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        errno = EAGAIN;
        return {};
    }
}

// Reads what has arrived already: most that ever say something have said it, and those that send
// something else are closed before they cost more.
void Driver::take_in(Fd fd, uint16_t meeting, int64_t now) {
    const Link link = next_accepted_;
    next_accepted_ += 2;
    connections_[link] = std::make_unique<Connection>(
        std::move(fd), wire::Handshake::Side::listener, own_, self_, wire::Handshake::anybody,
        now + wire::handshake_timeout, meeting);
    strangers_.add(link);
    ready(link, EPOLLIN, now);
    watch_connection(link, now);
}

void Driver::watch_connection(Link link, int64_t now) {
    const auto at = connections_.find(link);
    if (at == connections_.end()) return;
    const Connection &connection = *at->second;
    epoll_event event{};
    event.events = connection.wants_to_write() ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.u64 = link;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection.fd(), &event) != 0)
        broken(link, fail_errno(errno, "epoll_ctl"), now);
}

void Driver::remove(Link link) { // closing the descriptor removes it from epoll
    connections_.erase(link);
    strangers_.remove(link);
}

void Driver::update_interest(Link link, const Connection &connection) {
    epoll_event event{};
    event.events = connection.wants_to_write() ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.u64 = link;
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd(), &event);
}

void Driver::ready(Link link, uint32_t events, int64_t now) {
    auto at = connections_.find(link);
    if (at == connections_.end()) return; // closed by an earlier event of this round
    Connection &connection = *at->second;
    const Connection::State before = connection.state();
    const bool wanted = connection.wants_to_write();
    const Link number = link;
    std::vector<wire::Message> messages;
    Status s = DTRAIN_OK;
    if (events & EPOLLOUT) s = connection.ready_to_write();
    if (s == DTRAIN_OK && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
        s = connection.ready_to_read(messages);
    if (!connection.dialling() && connection.introduced()) strangers_.introduced(link);
    if (connection.state() == Connection::State::open && before != Connection::State::open)
        link = opened(link, connection);
    for (wire::Message &message : messages) events_.push_back(Received{link, std::move(message)});
    bool drained =
        connection.state() == Connection::State::draining && !connection.wants_to_write();
    if (s != DTRAIN_OK)
        broken(link, s, now);
    else if (drained)
        remove(link);
    else if (link != number || connection.wants_to_write() != wanted)
        update_interest(link, connection);
}

Link Driver::opened(Link link, Connection &connection) {
    round_trip_ns_ = std::max(round_trip_ns_, cluster::round_trip_ns(connection.fd()));
    if (!connection.dialling()) {
        prepare_accepted(connection.fd());
        strangers_.remove(link);
        events_.push_back(Accepted{link, connection.peer(), remote_endpoint(connection.fd()).host,
                                   local_endpoint(connection.fd()).host});
        return link;
    }
    link = settle(link);
    // A member that cannot listen is no candidate for taking over; nothing else needs its listener.
    Status s = listener_ ? DTRAIN_OK : listen_beside(connection);
    events_.push_back(
        Dialled{link, s == DTRAIN_OK ? place_of(listener_.get()).text() : std::string()});
    return link;
}

// Opens this member's listener, reachable as far as the coordinator's is.
Status Driver::listen_beside(const Connection &connection) {
    const std::string own = local_endpoint(connection.fd()).host;
    const bool local = is_loopback(own) && rendezvous_.is_local();
    Fd listener;
    if (listen_address_.empty() && !local) {
        if (Status s = listen_everywhere("0", listener); s != DTRAIN_OK) return s;
    } else {
        std::vector<SocketAddress> addresses;
        const std::string &host = listen_address_.empty() ? own : listen_address_;
        if (Status s = resolve({host, "0"}, join_deadline_, addresses); s != DTRAIN_OK) return s;
        if (Status s = listen_on(addresses[0], listener); s != DTRAIN_OK) return s;
    }
    if (Status s = watch(epoll_.get(), listener.get(), listener_mark); s != DTRAIN_OK) return s;
    listener_ = std::move(listener);
    return DTRAIN_OK;
}

void Driver::broken(Link link, Status status, int64_t now) {
    auto at = connections_.find(link);
    if (at == connections_.end()) return;
    std::string why = error_text();
    Connection &connection = *at->second;
    using State = Connection::State;
    if (connection.state() == State::open) {
        events_.push_back(
            Closed{link, why, status == DTRAIN_ERR_CORRUPT ? status : DTRAIN_ERR_PEER});
    } else if (connection.dialling() && connection.state() != State::draining) {
        if (status == DTRAIN_ERR_PEER)
            why = "it closed the connection during the handshake (it is ending, has no file "
                  "descriptors left (ulimit -n), or is not a process of dtrain)";
        if (auto dial = dials_.find(dial_of(link)); dial != dials_.end())
            dial->second.failed(connection.where(), status, why);
        remove(link);
        return advance(dial_of(link), now);
    } else if (connection.state() == State::handshaking && status != DTRAIN_ERR_PEER &&
               status != DTRAIN_ERR_BUSY) { // BUSY: another job answered; the dial goes on
        events_.push_back(
            TurnedAway{connection.peer(), remote_endpoint(connection.fd()).host, why});
    }
    remove(link);
}

// Tries an attempt's address anew, of which nothing was heard.
void Driver::dial_again(Link attempt, Connection &connection, int64_t now) {
    Fd fd;
    if (const auto dial = dials_.find(dial_of(attempt)); dial != dials_.end())
        (void)begin_connect(dial->second.candidate(number_of(attempt)), fd);
    const bool fresh = bool(fd);
    connection.again(std::move(fd), now);
    if (fresh) watch_connection(attempt, now);
}

void Driver::expire(int64_t now) {
    std::vector<Link> late, unheard;
    for (const auto &[link, connection] : connections_) {
        if (connection->state() == Connection::State::open) continue;
        if (now >= connection->deadline())
            late.push_back(link);
        else if (now >= connection->again_at())
            unheard.push_back(link);
    }
    for (Link link : unheard) dial_again(link, *connections_[link], now);
    for (Link link : late) {
        bool connecting = connections_[link]->state() == Connection::State::connecting;
        broken(link,
               fail(DTRAIN_ERR_TIMEOUT, connecting ? "no answer to the connection attempt"
                                                   : "no answer in the handshake"),
               now);
    }
    std::vector<Link> waiting; // for another attempt
    for (const auto &[link, dial] : dials_)
        if (now >= dial.next_deadline()) waiting.push_back(link);
    for (Link link : waiting) advance(link, now);
}

Status Driver::post(wire::Message message, int64_t now) {
    Actions actions;
    Status s = node_.post(std::move(message), now, actions);
    run(std::move(actions), now);
    return s;
}

Status Driver::ask(wire::GroupRequest request, uint32_t &serial, int64_t now) {
    Actions actions;
    Status s = node_.ask(std::move(request), serial, now, actions);
    run(std::move(actions), now);
    return s;
}

Status Driver::reform(wire::ReformRequest request, uint32_t &attempt, int64_t now) {
    Actions actions;
    Status s = node_.reform(std::move(request), attempt, now, actions);
    run(std::move(actions), now);
    return s;
}

void Driver::leave(bool moved, int64_t now) {
    // The listener is closed first: a member that learns that this one leaves and still finds it
    // listening would wait for it.
    listener_.reset();
    rendezvous_.close();
    door_.close();
    door_at_ = INT64_MAX;
    for (Action &action : node_.leave(moved))
        // all connections are closed below
        if (!std::holds_alternative<Close>(action)) perform(action, now);
    const std::string text = error_text(); // perhaps the reason why this member leaves
    wind_up(now + leave_timeout);
    set_error_text(text.c_str());
    drop_all();
}

void Driver::drop_all() {
    listener_.reset();
    door_.close();
    connections_.clear();
    dials_.clear();
    events_.clear();
    reports_.clear();
    strangers_.clear();
    accept_at_ = INT64_MAX;
}

void Driver::wind_up(int64_t until) {
    using State = Connection::State;
    strangers_.clear();
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
