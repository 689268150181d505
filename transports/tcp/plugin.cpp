// The table of the TCP transport.
// SPDX-License-Identifier: Apache-2.0
#include "common/route.h"
#include "tcp/device.h"

#include <cstdio>
#include <cstring>
#include <new>

namespace dtrain::tcp {
namespace {

dtrain_status_t list(const dtrain_tp_host_t *host, char *names, size_t len) {
    char all[1024];
    default_interface(tp::Host(host), all, sizeof all);
    if (strlen(all) >= len) return DTRAIN_ERR_TRUNCATED;
    snprintf(names, len, "%s", all);
    return DTRAIN_OK;
}

dtrain_status_t open(const dtrain_tp_host_t *host, const char *name, dtrain_tp_dev_t **dev_p) {
    auto *dev = new (std::nothrow) dtrain_tp_dev_t(host);
    if (!dev) return tp::Host(host).fail(DTRAIN_ERR_NO_MEMORY, "tcp: no memory for a device");
    const dtrain_status_t status = dev->open(name);
    if (status == DTRAIN_OK)
        *dev_p = dev;
    else
        delete dev;
    return status;
}

void close(dtrain_tp_dev_t *dev) { delete dev; }

dtrain_status_t query(dtrain_tp_dev_t *, dtrain_tp_attr_t *attr) {
    dtrain_tp_attr_t own{};
    own.max_iov = tp::max_iov;
    own.caps = DTRAIN_TP_CAP_EVENT_FD | DTRAIN_TP_CAP_PEER_LOST;
    own.max_message = message_limit;
    own.eager_limit = eager_limit;
    own.latency_ns = 7'000; // measured on loopback
    own.bandwidth_bps = 5'000'000'000;
    own.remote_latency_ns = 20'000; // assumes 10 Gbit/s Ethernet; tuning measures the real value
    own.remote_bandwidth_bps = 1'250'000'000;
    own.address_len = Address::wire_length;
    own.numa_node = -1;
    return tp::answer(own, attr);
}

dtrain_status_t address(dtrain_tp_dev_t *dev, void *buf, size_t len) {
    if (len < Address::wire_length)
        return dev->host().fail(DTRAIN_ERR_TRUNCATED, "tcp: an address needs %zu bytes",
                                Address::wire_length);
    return dev->address(static_cast<uint8_t *>(buf));
}

dtrain_status_t reachable(dtrain_tp_dev_t *dev, const void *address, size_t len) {
    return dev->reachable(address, len);
}

dtrain_status_t connect(dtrain_tp_dev_t *dev, const void *address, size_t len, uint64_t cookie,
                        dtrain_tp_ep_t **ep_p) {
    return dev->connect(address, len, cookie, ep_p);
}

void disconnect(dtrain_tp_ep_t *ep) { ep->device->disconnect(ep); }

dtrain_status_t send(dtrain_tp_ep_t *ep, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                     uint64_t cookie) {
    return ep->device->send(ep, tag, iov, n, cookie);
}

dtrain_status_t recv(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask,
                     const dtrain_tp_iov_t *iov, uint32_t n, uint64_t cookie) {
    return dev->recv(wanted, mask, iov, n, cookie);
}

void cancel(dtrain_tp_dev_t *dev, uint64_t cookie) { dev->cancel(cookie); }

void purge(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask) { dev->purge(wanted, mask); }

int32_t progress(dtrain_tp_dev_t *dev, dtrain_tp_done_t *done, uint32_t max) {
    return dev->progress(done, max);
}

int32_t event_fd(dtrain_tp_dev_t *dev) { return dev->event_fd(); }

dtrain_status_t arm(dtrain_tp_dev_t *dev) { return dev->arm(); }

uint64_t moved(dtrain_tp_dev_t *dev) { return dev->moved(); }

dtrain_status_t route(dtrain_tp_dev_t *dev, const void *address, size_t len, char *text,
                      size_t text_len) {
    std::string answer;
    const dtrain_status_t status = dev->route(address, len, &answer);
    return status == DTRAIN_OK ? tp::answer_text(answer, text, text_len) : status;
}

constexpr dtrain_tp_ops_t make_ops() {
    dtrain_tp_ops_t ops{};
    ops.struct_size = sizeof ops;
    ops.list = list;
    ops.open = open;
    ops.close = close;
    ops.query = query;
    ops.address = address;
    ops.reachable = reachable;
    ops.connect = connect;
    ops.disconnect = disconnect;
    ops.send = send;
    ops.recv = recv;
    ops.cancel = cancel;
    ops.purge = purge;
    ops.progress = progress;
    ops.event_fd = event_fd;
    ops.arm = arm;
    ops.moved = moved;
    ops.route = route;
    ops.limit_eager = [](dtrain_tp_dev_t *dev, uint64_t bytes) { dev->limit_eager(bytes); };
    ops.withdraw = [](dtrain_tp_dev_t *dev, uint64_t cookie) { dev->withdraw(cookie); };
    return ops;
}
constexpr dtrain_tp_ops_t ops = make_ops();

} // namespace
} // namespace dtrain::tcp

extern "C" {
extern const dtrain_tp_plugin_t dtrain_tp_plugin_tcp;
const dtrain_tp_plugin_t dtrain_tp_plugin_tcp{sizeof(dtrain_tp_plugin_t), DTRAIN_TP_ABI, "tcp",
                                              "0.1.0", &dtrain::tcp::ops};
}
