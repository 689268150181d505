// One opened TCP device.
// SPDX-License-Identifier: Apache-2.0
#include "tcp/device.h"
#include "common/machine.h"
#include "common/route.h"
#include "tcp/socket.h"

#include <cstdio>
#include <cstring>
#include <linux/sockios.h>
#include <new>
#include <poll.h>
#include <sys/ioctl.h>

namespace dtrain::tcp {
namespace {

// With several connections, epoll is asked first. A single connection is tried without epoll,
// except now and then, to find new incoming connections.
constexpr uint32_t poll_every = 64;
constexpr int drain_ms = 200;
constexpr char any_interface[] = "auto"; // the device that chooses the interface itself

// "tcp.interface" (a list: one device each), else "listen.address", else any_interface.
void default_interface(const tp::Host &host, char *buf, size_t len) {
    if (!host.option("tcp.interface", buf, len) && !host.option("listen.address", buf, len))
        snprintf(buf, len, "%s", any_interface);
}

} // namespace

dtrain_status_t Device::list(const tp::Host &host, std::string *names) {
    char all[1024];
    default_interface(host, all, sizeof all);
    *names = all;
    return DTRAIN_OK;
}

std::unique_ptr<Device> Device::make(const dtrain_tp_host_t *host, const char *) {
    return std::unique_ptr<Device>(new (std::nothrow) Device(host));
}

Device::Device(const dtrain_tp_host_t *host)
    : DeviceBase(host, transport_name()), handshakes_(&shared_, this) {
    set_most_eager(eager_limit);
}

Device::~Device() {
    drain();
    abandon_all();
}

dtrain_status_t Device::open(const char *name) {
    char interface[256];
    if (name && *name)
        snprintf(interface, sizeof interface, "%s", name);
    else
        default_interface(host(), interface, sizeof interface);
    finds_address_ = strcmp(interface, any_interface) == 0;
    const dtrain_status_t status =
        resolve_local(host(), finds_address_ ? "127.0.0.1" : interface, &own_.sockets[0]);
    if (status != DTRAIN_OK) return status;
    if (!host().option("tcp.congestion", congestion_, sizeof congestion_))
        snprintf(congestion_, sizeof congestion_, "auto");
    if (!shared_.poller.open())
        return host().fail(DTRAIN_ERR_IO, "tcp: epoll_create1: %s", strerror(errno));
    host().random(own_.id.data(), own_.id.size());
    own_.host = tp::machine_fingerprint("net");
    own_.count = 1;
    return handshakes_.open(&own_.sockets[0], own_.id);
}

dtrain_status_t Device::query(dtrain_tp_attr_t *attr) const {
    dtrain_tp_attr_t own{};
    own.max_iov = tp::max_iov;
    own.caps = DTRAIN_TP_CAP_EVENT_FD | DTRAIN_TP_CAP_PEER_LOST | DTRAIN_TP_CAP_GUARDED |
               DTRAIN_TP_CAP_WORDS;
    own.max_message = message_limit;
    own.eager_limit = eager_limit;
    own.latency_ns = 7'000; // measured on loopback
    own.bandwidth_bps = 5'000'000'000;
    own.remote_latency_ns = 20'000; // assumes 10 Gbit/s Ethernet; tuning measures the real value
    own.remote_bandwidth_bps = 1'250'000'000;
    own.address_len = address_length;
    own.numa_node = -1;
    return tp::answer(own, attr);
}

dtrain_status_t Device::address(uint8_t out[Address::wire_length]) {
    char found[256];
    if (finds_address_ && host().option("local.address", found, sizeof found)) {
        if (const dtrain_status_t status = listen_everywhere(found); status != DTRAIN_OK)
            return status;
        finds_address_ = false;
    }
    own_.encode(out);
    return DTRAIN_OK;
}

// Some peers may reach this host only at an address other than the best guess.
dtrain_status_t Device::listen_everywhere(const char *best) {
    Address fresh = own_;
    fresh.count = 0;
    SocketAddress first, listener = everywhere(AF_INET6);
    dtrain_status_t status = resolve_local(host(), best, &first);
    if (status != DTRAIN_OK) return status;
    fresh.add(first);
    if (handshakes_.listen(&listener) != DTRAIN_OK) { // this machine has no IPv6
        listener = first;
        status = handshakes_.listen(&listener);
    } else if (!is_loopback(first)) {
        add_own(&fresh);
    }
    if (status != DTRAIN_OK) return status;
    fresh.set_port(port_of(listener));
    own_ = fresh;
    return DTRAIN_OK;
}

// The peer's sockets that may be reachable from this host, in their order.
Address Device::leading(const Address &peer) const {
    Address out = peer;
    if (peer.host == own_.host) return out;
    out.count = 0;
    for (uint32_t i = 0; i < peer.count; i++)
        if (!is_loopback(peer.sockets[i]) && !tp::is_own_address(&peer.sockets[i].any))
            out.sockets[out.count++] = peer.sockets[i];
    return out;
}

dtrain_status_t Device::reachable(const void *address, size_t len) {
    Address peer;
    if (!peer.decode(address, len))
        return host().fail(DTRAIN_ERR_INVALID, "tcp: these %zu bytes are not an address", len);
    if (leading(peer).count > 0) return connections_.expect(peer.id), DTRAIN_OK;
    if (is_loopback(peer.sockets[0]))
        return host().fail(DTRAIN_ERR_NOT_FOUND,
                           "tcp: %s is the loopback of another host; give a rendezvous by an "
                           "address or name that other hosts reach, or set option tcp.interface "
                           "there",
                           text_of(peer.sockets[0]).text);
    return host().fail(DTRAIN_ERR_NOT_FOUND,
                       "tcp: the peer on another host listens at %s, which is an address of this "
                       "host, too; set option tcp.interface to an interface that other hosts reach",
                       text_of(peer.sockets[0]).text);
}

dtrain_status_t Device::route(const void *address, size_t len, std::string *text) {
    Address peer;
    if (!peer.decode(address, len)) return DTRAIN_ERR_INVALID;
    *text = tp::route_text(&own_.sockets[0].any, &peer.sockets[0].any, "tcp.interface");
    return DTRAIN_OK;
}

dtrain_status_t Device::connect(const void *address, size_t len, uint64_t cookie, Endpoint **ep_p) {
    Address peer;
    if (!peer.decode(address, len))
        return host().fail(DTRAIN_ERR_INVALID, "tcp: these %zu bytes are not an address", len);
    connections_.expect(peer.id);
    bool fresh;
    Endpoint *ep = attach(peer.id, cookie, &fresh);
    if (!ep) return DTRAIN_ERR_NO_MEMORY;
    *ep_p = ep;
    if (fresh) {
        ep->connection->targets = leading(peer);
        handshakes_.connect(ep->connection);
    }
    return DTRAIN_OK;
}

dtrain_status_t Device::send(Endpoint *ep, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                             uint64_t cookie) {
    uint64_t length;
    if (!tp::iov_length(iov, n, &length) || length > message_limit)
        return host().fail(DTRAIN_ERR_INVALID,
                           "tcp: a message can have at most %u pieces and %llu "
                           "bytes",
                           tp::max_iov, static_cast<unsigned long long>(message_limit));
    if (!ep->connection) return host().fail(DTRAIN_ERR_PEER, "tcp: the peer is lost");
    Send *send = shared_.sends.get();
    if (!send || !shared_.completions.reserve(1)) {
        if (send) shared_.sends.put(send);
        return host().fail(DTRAIN_ERR_NO_MEMORY, "tcp: no memory for another send");
    }
    send->endpoint = ep;
    send->tag = tag;
    send->length = length;
    send->cookie = cookie;
    send->from.assign(iov, n, length);
    ep->connection->post(send);
    return DTRAIN_OK;
}

int32_t Device::progress(dtrain_tp_done_t *done, uint32_t max) {
    const bool few = connections_.count() <= 1;
    // What is complete already is told first: a rank that only sends, to one peer, need not look
    // for what has come each time.
    if (few && !shared_.attention && !shared_.completions.empty() && ++told_ % poll_every != 0)
        return shared_.completions.pop(done, max);
    const bool attention = std::exchange(shared_.attention, false);
    if (few || attention) run_all();
    if (!few || poll_next_ || !handshakes_.idle() || ++ticks_ % poll_every == 0) poll();
    return shared_.completions.pop(done, max);
}

dtrain_status_t Device::arm() {
    poll_next_ = true;
    if (!shared_.completions.empty() || shared_.attention) return DTRAIN_ERR_BUSY;
    update_interests();
    return shared_.poller.anything_ready() ? DTRAIN_ERR_BUSY : DTRAIN_OK;
}

void Device::update_interests() {
    if (!std::exchange(shared_.stale_interest, false)) return;
    for (Connection *c = connections_.front(); c; c = connections_.next(c)) c->update_interest();
}

void Device::run_all() {
    for (Connection *c = connections_.front(), *next; c; c = next) {
        next = connections_.next(c);
        run(c);
    }
}

void Device::run(Connection *connection) {
    if (connection->up() && !connection->progress()) lose(connection, connection->failure());
}

void Device::poll() {
    poll_next_ = false;
    if (connections_.has_guests()) show_out_guests();
    update_interests();
    shared_.poller.poll([this](Pollable *who) {
        if (who->kind == Pollable::Kind::connection)
            run(static_cast<Connection *>(who));
        else
            handshakes_.dispatch(who);
    });
}

Verdict Device::admit(const DeviceId &peer) {
    if (peer == own_.id) return Verdict::accepted; // the device's own address: both ends are here
    const Connection *connection = connections_.find(peer);
    if (!connection) return Verdict::accepted;
    // If both sides connect at once, the connection from the device with the smaller id survives.
    return connection->up() || own_.id < peer ? Verdict::duplicate : Verdict::accepted;
}

void Device::joined(Connection *connection, const DeviceId &peer, Route route) {
    if (!connection && peer != own_.id) connection = connections_.find(peer);
    connection = accept(connection, peer);
    if (!connection) return; // no memory: the peer sees the socket close
    tune(host(), route.fd.get(), congestion_);
    if (!connection->establish(std::move(route))) return lose(connection, DTRAIN_ERR_NO_MEMORY);
    connections_.report_up(connection);
}

void Device::show_out_guests() {
    const int64_t now = host().now_ns();
    while (Connection *guest = connections_.overdue_guest(now)) {
        host().log(DTRAIN_LOG_INFO, "tcp: a connection from a device outside the job was closed");
        lose(guest, DTRAIN_ERR_PEER);
    }
}

// Closing a socket with unread bytes resets it, which would discard data that the peer's kernel
// does not have yet. So this waits briefly until the peer's kernel has it all; usually there is
// nothing to wait for.
void Device::drain() {
    for (int waited = 0; waited < drain_ms; waited++) {
        bool more = false;
        for (Connection *c = connections_.front(); c; c = connections_.next(c)) {
            int unsent = 0;
            if (!c->up() || ioctl(c->fd(), SIOCOUTQ, &unsent) || !unsent) continue;
            while (::recv(c->fd(), shared_.scratch, sizeof shared_.scratch, MSG_DONTWAIT) > 0) {
            }
            more = true;
        }
        if (!more) return;
        ::poll(nullptr, 0, 1);
    }
}

} // namespace dtrain::tcp
