// One opened device: its progress and the events that it handles.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/device.h"

#include <ctime>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

namespace dtrain::rdm {
namespace {

// Timers and processes that have ended are checked once in this many calls of progress(), and not
// more often than at this interval.
constexpr uint32_t look_every = 64;
constexpr int64_t look_every_ns = 1'000'000;
// Of this many calls with completions to report, one polls the network all the same.
constexpr uint32_t network_every = 16;
// What a busy wire could not take is tried again in each round, and after a while only at this
// interval: a peer that is stopped or cut off may keep the wire busy for long.
constexpr int64_t busy_tick_ns = 1'000'000;
constexpr int64_t withdrawal_tick_ns = 5'000'000; // while withdrawn memory has not been returned
constexpr int64_t handshake_tick_ns = 50'000'000; // while a handshake is in progress
constexpr int64_t idle_tick_ns = 2'000'000'000;   // to find peers that are gone
constexpr int drain_ms = 200;
constexpr timespec drain_nap = {0, 20'000}; // who has to answer may need this core
constexpr int last_rounds = 100;            // to receive what a process that has ended sent before

} // namespace

int32_t Device::progress(dtrain_tp_done_t *done, uint32_t max) {
    // Completions are reported at once: polling the network takes one or several system calls.
    const bool attention = shared_.attention || shared_.waits;
    if (!shared_.completions.empty() && !attention && ++told_ % network_every)
        return shared_.completions.pop(done, max);
    if (!wire_->progress())
        return host().fail(DTRAIN_ERR_TRANSPORT, "%s: the device is broken", shared_.name);
    if (look_next_ || (++ticks_ % look_every == 0 && look_is_due())) look_around();
    if (std::exchange(shared_.attention, false) || shared_.waits) work();
    return shared_.completions.pop(done, max);
}

dtrain_status_t Device::arm() {
    look_next_ = true;
    if (!shared_.completions.empty() || shared_.attention || !may_sleep_while_it_waits() ||
        !wire_->arm())
        return DTRAIN_ERR_BUSY;
    epoll_event event;
    return epoll_wait(epoll_.get(), &event, 1, 0) > 0 ? DTRAIN_ERR_BUSY : DTRAIN_OK;
}

// Wires signal when they have room again, but not all of them always, and memory does not: so the
// timer goes as well.
bool Device::may_sleep_while_it_waits() {
    if (!shared_.waits) return true;
    const int64_t now = host().now_ns();
    if (waits_since_ns_ == 0) waits_since_ns_ = now;
    set_timer();
    return now - waits_since_ns_ >= busy_tick_ns;
}

// Handles broken connections, connections that wait for the wire, and handshakes.
void Device::work() {
    shared_.waits = false;
    handshakes_.work();
    while (Connection *guest = connections_.overdue_guest(looked_ns_)) {
        guest->fail("the job has not named this peer");
        lose(guest, DTRAIN_ERR_PEER);
    }
    for (Connection *c = connections_.front(), *next; c; c = next) {
        next = connections_.next(c);
        if (c->broken())
            lose(c, c->failure());
        else
            c->work();
    }
    if (!shared_.waits) waits_since_ns_ = 0;
}

bool Device::watch(int fd, void *what) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = what;
    return !epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

bool Device::look_is_due() { return host().now_ns() - looked_ns_ >= look_every_ns; }

// Checks timers and processes that have ended.
void Device::look_around() {
    look_next_ = false;
    looked_ns_ = host().now_ns();
    epoll_event events[16];
    const int n = epoll_wait(epoll_.get(), events, 16, 0);
    for (int i = 0; i < n; i++) {
        void *what = events[i].data.ptr;
        if (what == &wire_) continue;
        if (what == &timer_) {
            uint64_t times;
            if (read(timer_.get(), &times, sizeof times) < 0) continue;
            const int64_t now = host().now_ns();
            for (Connection *c = connections_.front(); c; c = connections_.next(c)) c->tick(now);
            shared_.attention = true;
            set_timer();
        } else {
            auto *connection = static_cast<Connection *>(what);
            for (int k = 0; k < last_rounds; k++) wire_->progress();
            connection->fail("its process has ended");
        }
    }
}

void Device::set_timer() {
    int64_t ns = !handshakes_.idle() ? handshake_tick_ns : connections_.front() ? idle_tick_ns : 0;
    for (Connection *c = connections_.front(); c; c = connections_.next(c))
        if (c->waits_for_memory()) ns = withdrawal_tick_ns;
    if (shared_.waits) ns = busy_tick_ns;
    if (ns == tick_ns_) return;
    tick_ns_ = ns;
    itimerspec when{};
    when.it_interval = when.it_value = {ns / 1'000'000'000, ns % 1'000'000'000};
    timerfd_settime(timer_.get(), 0, &when, nullptr);
}

Channel *Device::find_channel(const uint8_t *bytes, size_t len, Head *head) {
    if (len < Head::wire_length) return nullptr;
    head->decode(bytes);
    Channel *channel = shared_.channels.find(head->to);
    if (!channel || channel->token != head->token) return nullptr; // from a lost connection
    if (head->sequence == channel->received++) return channel;
    if (channel->connection) channel->connection->on_gap();
    return nullptr;
}

void Device::on_packet(const uint8_t *bytes, size_t len) {
    Head head;
    Channel *channel = find_channel(bytes, len, &head);
    const uint8_t *body = bytes + Head::wire_length;
    if (!channel) {
        if (len >= Head::wire_length && head.kind == Kind::hello && !head.token)
            handshakes_.on_hello(body, len - Head::wire_length);
        set_timer();
    } else if (channel->handshake) {
        handshakes_.on_packet(channel->handshake, head, body, len - Head::wire_length);
    } else if (channel->connection) {
        channel->connection->hear(head, body, len - Head::wire_length);
    }
}

void Device::on_announced(const uint8_t *bytes, size_t len, Remote *remote) {
    Head head;
    Channel *channel = find_channel(bytes, len, &head);
    if (channel && channel->connection)
        channel->connection->hear_announced(head, remote);
    else
        wire_->drop(nullptr, remote);
}

void Device::on_sent(Operation *operation, bool ok) {
    auto *job = static_cast<Job *>(operation);
    job->connection->on_done(job, ok);
}

void Device::on_fetched(Operation *operation, bool ok) { on_sent(operation, ok); }

void Device::on_broken(Link *link, const Fault &fault) {
    auto *channel = static_cast<Channel *>(link->owner);
    if (Connection *connection = channel->connection)
        fault.status == DTRAIN_ERR_PEER ? connection->fail(fault.why)
                                        : connection->quit(fault.why, fault.status);
    if (channel->handshake) channel->handshake->broken = fault.why;
    shared_.attention = true;
}

Verdict Device::admit(const DeviceId &peer) {
    const Connection *connection = connections_.find(peer);
    // If both sides connect at once, the attempt of the device with the smaller id continues.
    return !connection || !connection->handshake || peer < own_.id ? Verdict::accepted
                                                                   : Verdict::duplicate;
}

void Device::joined(Connection *connection, const DeviceId &peer, Route route) {
    if (!connection) connection = connections_.find(peer);
    connection = accept(connection, peer);
    if (!connection)
        return Handshakes::close_channel(shared_, std::move(route.channel)); // no memory
    if (route.process) watch(route.process.get(), connection);
    connection->establish(std::move(route));
    connections_.report_up(connection);
    set_timer();
}

// Flushes pending sends after checking which peers are gone. A peer that has answered the goodbye
// sends nothing any more.
void Device::drain() {
    for (int i = 0; i < last_rounds; i++) wire_->progress();
    wire_->quiet(); // from here on the wire sees to it
    const int64_t end = host().now_ns() + int64_t{drain_ms} * 1'000'000;
    const auto is_flushed = [this] {
        Connection *c = connections_.front();
        while (c && c->is_flushed()) c = connections_.next(c);
        return !c;
    };
    const auto progress_until = [&](const auto &is_done) {
        for (; !is_done() && host().now_ns() < end; nanosleep(&drain_nap, nullptr))
            wire_->progress();
    };
    progress_until(is_flushed);
    for (Connection *c = connections_.front(); c; c = connections_.next(c)) c->say_goodbye();
    const auto is_over = [this] {
        Connection *c = wire_->attr().closes_quietly ? nullptr : connections_.front();
        while (c && !c->may_hear()) c = connections_.next(c);
        return !c && wire_->quiet();
    };
    progress_until(is_over);
}

} // namespace dtrain::rdm
