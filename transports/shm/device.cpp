// One opened transport: endpoints, incoming connections, progress and windows.
// SPDX-License-Identifier: Apache-2.0
#include "shm/device.h"
#include "shm/trial.h"

#include <fcntl.h>

namespace dtrain::shm {
namespace {

// Checking the sockets is a system call, and reading the clock costs nearly as much. New
// connections and lost peers can wait a little; messages need neither.
constexpr uint32_t calls_per_clock = 16;
constexpr int64_t socket_interval_ns = 50'000;
// Connections that are accepted before the others are served again.
constexpr uint32_t accepts_at_once = 64;

} // namespace

Status Device::open() {
    Host &host = shared_.host;
    host.option("shm.directory", shared_.directory, sizeof shared_.directory);
    char copy[16];
    shared_.copies_directly =
        !host.option("shm.copy", copy, sizeof copy) || std::strcmp(copy, "ring") != 0;
    char distance[16];
    if (host.option("shm.distance", distance, sizeof distance))
        shared_.distance = tp::distance_named(distance);
    Status status = make_address(host, shared_.own);
    if (status == DTRAIN_OK) status = shared_.poller.open(host);
    if (status == DTRAIN_OK) status = listen_as(host, shared_.own.name, listener_);
    if (status == DTRAIN_OK) status = shared_.bell.open(host, shared_.own.name);
    if (status == DTRAIN_OK) status = try_out(host, shared_.own.name, listener_, shared_.bell);
    if (status == DTRAIN_ERR_IO || status == DTRAIN_ERR_PEER || status == DTRAIN_ERR_TRANSPORT)
        return DTRAIN_ERR_UNSUPPORTED; // the error text is set; other transports are used
    if (status == DTRAIN_OK) status = shared_.poller.add(host, shared_.bell.fd(), &bell_watcher_);
    if (status == DTRAIN_OK) status = listen();
    return status;
}

Device::~Device() {
    while (Inbound *inbound = inbounds_.pop_front()) delete inbound;
}

Status Device::connect(const void *address, size_t len, uint64_t cookie, Endpoint **out) {
    Address peer;
    Status status = check_reach(shared_.host, shared_.own, address, len, peer);
    if (status != DTRAIN_OK) return status;
    auto *endpoint = new (std::nothrow) Endpoint(*this, shared_, peer, cookie);
    if (endpoint == nullptr) return DTRAIN_ERR_NO_MEMORY;
    status = endpoint->start();
    if (status != DTRAIN_OK) {
        delete endpoint;
        return status;
    }
    endpoints_.push_back(endpoint);
    *out = endpoint;
    return DTRAIN_OK;
}

void Device::disconnect(Endpoint *endpoint) {
    endpoints_.remove(endpoint);
    delete endpoint;
    shared_.stir();
}

Status Device::recv(uint64_t wanted, uint64_t mask, const dtrain_tp_iov_t *iov, uint32_t n,
                    uint64_t cookie) {
    uint64_t length;
    if (!tp::iov_length(iov, n, &length))
        return shared_.host.fail(DTRAIN_ERR_INVALID, "shm: a receive has a bad list of %u pieces",
                                 n);
    if (!shared_.done.reserve()) return DTRAIN_ERR_NO_MEMORY;
    tp::Receive *receive = shared_.matcher.create(wanted, mask, iov, n, length, cookie);
    if (receive == nullptr) {
        shared_.done.unreserve();
        return DTRAIN_ERR_NO_MEMORY;
    }
    if (tp::Message *message = shared_.matcher.post(receive)) {
        static_cast<Receiver *>(message->origin)->deliver(message, receive);
        shared_.stir();
    }
    return DTRAIN_OK;
}

void Device::cancel(uint64_t cookie) {
    tp::Receive *receive = shared_.matcher.cancel(cookie);
    if (receive == nullptr) return;
    shared_.done.push(receive->failed(DTRAIN_ERR_CANCELED));
    shared_.matcher.release(receive);
    shared_.stir();
}

void Device::withdraw(uint64_t cookie) {
    cancel(cookie);
    for (Inbound *inbound = inbounds_.front(); inbound; inbound = inbounds_.next(inbound))
        if (inbound->is_up()) inbound->withdraw(cookie);
    for (Endpoint *endpoint = endpoints_.front(); endpoint; endpoint = endpoints_.next(endpoint))
        endpoint->withdraw(cookie);
    shared_.stir();
}

void Device::purge(uint64_t wanted, uint64_t mask) {
    while (tp::Message *message = shared_.matcher.take(wanted, mask))
        static_cast<Receiver *>(message->origin)->discard(message);
}

int32_t Device::progress(dtrain_tp_done_t *done, uint32_t max) {
    if (shared_.asleep) set_asleep(false);
    if (is_time_for_sockets()) look_at_sockets();
    for (Inbound *inbound = inbounds_.front(); inbound; inbound = inbounds_.next(inbound))
        if (inbound->is_up()) inbound->receive();
    for (Endpoint *endpoint = endpoints_.front(); endpoint; endpoint = endpoints_.next(endpoint))
        if (endpoint->is_pending()) endpoint->advance();
    return shared_.done.pop(done, max);
}

bool Device::is_time_for_sockets() {
    if (looked_ns_ != 0 && ++calls_ % calls_per_clock != 0) return false;
    int64_t now = shared_.host.now_ns();
    if (looked_ns_ != 0 && shared_.greetings == 0 && now - looked_ns_ < socket_interval_ns)
        return false;
    looked_ns_ = now;
    return true;
}

void Device::look_at_sockets() {
    shared_.poller.dispatch();
    if (!listening_ && make_room_for_stranger()) listen();
    const int64_t now = shared_.greetings > 0 ? shared_.host.now_ns() : 0;
    for (Inbound *next, *inbound = inbounds_.front(); inbound; inbound = next) {
        next = inbounds_.next(inbound);
        if (inbound->is_silent() && inbound->is_late(now)) inbound->close();
        if (!inbound->is_over()) continue;
        inbounds_.remove(inbound);
        delete inbound;
    }
}

Status Device::listen() {
    Status status = shared_.poller.add(shared_.host, listener_, this);
    listening_ = status == DTRAIN_OK;
    if (!spare_) spare_ = Fd(fcntl(listener_.get(), F_DUPFD_CLOEXEC, 3));
    return status;
}

void Device::on_readable() {
    for (uint32_t i = 0; make_room_for_stranger(); i++) {
        if (i == accepts_at_once) return; // it stays readable
        Fd fd;
        if (!accept_from(listener_, fd)) {
            if (errno == EMFILE || errno == ENFILE) refuse_one();
            return;
        }
        if (!fd) continue;
        auto *inbound = new (std::nothrow) Inbound(shared_, std::move(fd));
        if (inbound == nullptr) return;
        inbounds_.push_back(inbound);
        if (inbound->start() != DTRAIN_OK)
            inbound->close();
        else
            inbound->on_readable(); // a peer has said hello by now
    }
    shared_.poller.remove(listener_); // it would wake this device all the time
    listening_ = false;
}

// A connection that cannot be accepted would wake this device all the time, and wait forever.
void Device::refuse_one() {
    shared_.host.log(DTRAIN_LOG_ERROR,
                     "shm: refused a connection: no file descriptors left; raise ulimit -n");
    spare_.reset();
    Fd fd;
    accept_from(listener_, fd);
    fd.reset();
    spare_ = Fd(fcntl(listener_.get(), F_DUPFD_CLOEXEC, 3));
}

bool Device::make_room_for_stranger() {
    uint32_t strangers = 0;
    for (Inbound *inbound = inbounds_.front(); inbound; inbound = inbounds_.next(inbound))
        strangers += inbound->is_stranger();
    if (strangers < max_strangers) return true;
    int64_t now = shared_.host.now_ns();
    for (Inbound *inbound = inbounds_.front(); inbound; inbound = inbounds_.next(inbound))
        if (inbound->is_silent() || inbound->is_late(now)) {
            inbound->close();
            return true;
        }
    return false;
}

void Device::set_asleep(bool asleep) {
    shared_.asleep = asleep;
    if (!asleep) looked_ns_ = 0; // a socket may be what woke it
    for (Inbound *inbound = inbounds_.front(); inbound; inbound = inbounds_.next(inbound))
        if (inbound->is_up()) inbound->set_asleep(asleep);
    for (Endpoint *endpoint = endpoints_.front(); endpoint; endpoint = endpoints_.next(endpoint))
        if (endpoint->is_pending()) endpoint->set_asleep(asleep);
    for (Window *window = shared_.windows.front(); window; window = shared_.windows.next(window))
        window->set_asleep(asleep);
    __sync_synchronize(); // the caller checks its windows after this
}

bool Device::has_news() {
    if (!shared_.done.empty()) return true;
    for (Inbound *inbound = inbounds_.front(); inbound; inbound = inbounds_.next(inbound))
        if (inbound->is_up() && inbound->has_news()) return true;
    for (Endpoint *endpoint = endpoints_.front(); endpoint; endpoint = endpoints_.next(endpoint))
        if (endpoint->is_pending() && endpoint->has_news()) return true;
    return false;
}

Status Device::arm() {
    if (!shared_.done.empty()) return DTRAIN_ERR_BUSY;
    set_asleep(true);
    if (!has_news()) return DTRAIN_OK;
    set_asleep(false);
    return DTRAIN_ERR_BUSY;
}

Status Device::create_window(WindowShape shape, uint32_t member, void *handle, Window **out) {
    if (!shape.is_valid() || member >= shape.members)
        return shared_.host.fail(
            DTRAIN_ERR_INVALID,
            "shm: cannot create a window of %llu bytes for member %u of %u (at "
            "most %u members)",
            static_cast<unsigned long long>(shape.bytes), member, shape.members, max_members);
    Segment segment;
    Fd fd;
    Status status = Segment::create(shared_.host, shape.size(), shared_.directory, segment, fd);
    if (status != DTRAIN_OK) return status;
    Name id;
    shared_.host.random(id.data(), id.size());
    status = add_window(std::move(segment), std::move(fd), id, shape, member, out);
    if (status == DTRAIN_OK) std::memcpy(handle, id.data(), id.size());
    return status;
}

Status Device::attach_window(Endpoint *creator, const void *handle, WindowShape shape,
                             uint32_t member, Window **out) {
    if (!shape.is_valid() || member >= shape.members)
        return shared_.host.fail(DTRAIN_ERR_INVALID, "shm: a window cannot have a member %u of %u",
                                 member, shape.members);
    Name id;
    std::memcpy(id.data(), handle, id.size());
    Fd fd;
    Status status = creator->ask_window(id, shape, fd);
    if (status != DTRAIN_OK) return status;
    // Only anonymous memory can be sealed. A user that sets shm.directory trusts the processes that
    // use it.
    bool must_be_sealed = shared_.directory[0] == '\0';
    Segment segment;
    status = Segment::attach(shared_.host, fd, shape.size(), must_be_sealed, segment);
    if (status != DTRAIN_OK) return status;
    return add_window(std::move(segment), Fd(), id, shape, member, out);
}

Status Device::add_window(Segment &&segment, Fd &&fd, const Name &id, WindowShape shape,
                          uint32_t member, Window **out) {
    auto *window = new (std::nothrow) Window(*this, std::move(segment), std::move(fd), id, shape,
                                             member, shared_.own.name, shared_.bell);
    if (window == nullptr) return DTRAIN_ERR_NO_MEMORY;
    shared_.windows.push_back(window);
    shared_.stir();
    *out = window;
    return DTRAIN_OK;
}

void Device::free_window(Window *window) {
    shared_.windows.remove(window);
    delete window;
}

} // namespace dtrain::shm
