// The table of a transport that consists of a wire and the connections of this folder.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/plugin.h"
#include "common/route.h"

namespace dtrain::rdm {
namespace {

dtrain_status_t list(const dtrain_tp_host_t *host, char *names, size_t len) {
    std::string all;
    if (const dtrain_status_t status = list_devices(tp::Host(host), &all); status != DTRAIN_OK)
        return status;
    if (all.size() >= len) return DTRAIN_ERR_TRUNCATED;
    memcpy(names, all.c_str(), all.size() + 1);
    return DTRAIN_OK;
}

dtrain_status_t open(const dtrain_tp_host_t *host, const char *name, dtrain_tp_dev_t **dev_p) {
    auto *dev = new (std::nothrow) dtrain_tp_dev_t(host, kind_of(name).c_str());
    std::unique_ptr<Wire> wire;
    if (dev) wire = make_wire(dev->host(), dev->protocol());
    dtrain_status_t status =
        wire ? dev->open(std::move(wire), name)
             : tp::Host(host).fail(DTRAIN_ERR_NO_MEMORY, "%s: no memory for a device",
                                   transport_name);
    if (status == DTRAIN_OK)
        *dev_p = dev;
    else
        delete dev;
    return status;
}

void close(dtrain_tp_dev_t *dev) { delete dev; }

dtrain_status_t query(dtrain_tp_dev_t *dev, dtrain_tp_attr_t *attr) { return dev->query(attr); }

dtrain_status_t address(dtrain_tp_dev_t *dev, void *buf, size_t len) {
    if (len < Address::wire_length)
        return dev->host().fail(DTRAIN_ERR_TRUNCATED, "%s: an address needs %zu bytes",
                                transport_name, Address::wire_length);
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

dtrain_status_t mr_reg(dtrain_tp_dev_t *dev, const dtrain_mem_params_t *mem,
                       dtrain_tp_mr_t **mr_p) {
    return dev->wire().reg(*mem, mr_p);
}

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

dtrain_status_t put(dtrain_tp_ep_t *ep, const dtrain_tp_iov_t *iov, uint32_t n,
                    uint64_t remote_addr, const void *rkey, uint64_t imm, uint64_t cookie) {
    return ep->device->put(ep, iov, n, {remote_addr, rkey}, imm, cookie);
}

dtrain_status_t get(dtrain_tp_ep_t *ep, const dtrain_tp_iov_t *iov, uint32_t n,
                    uint64_t remote_addr, const void *rkey, uint64_t cookie) {
    return ep->device->get(ep, iov, n, {remote_addr, rkey}, cookie);
}

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
    ops.mr_reg = mr_reg;
    ops.mr_dereg = [](dtrain_tp_mr_t *mr) { mr->wire->dereg(mr); };
    ops.mr_rkey = [](dtrain_tp_mr_t *mr, void *buf, size_t len) {
        return mr->wire->rkey(mr, buf, len);
    };
    ops.send = send;
    ops.recv = recv;
    ops.cancel = cancel;
    ops.purge = purge;
    ops.put = put;
    ops.get = get;
    ops.progress = progress;
    ops.event_fd = event_fd;
    ops.arm = arm;
    ops.moved = moved;
    ops.counters = [](dtrain_tp_dev_t *dev, dtrain_tp_counters_t *c) { return dev->counters(c); };
    ops.route = route;
    ops.limit_eager = [](dtrain_tp_dev_t *dev, uint64_t bytes) { dev->limit_eager(bytes); };
    ops.withdraw = [](dtrain_tp_dev_t *dev, uint64_t cookie) { dev->withdraw(cookie); };
    return ops;
}

} // namespace

const dtrain_tp_ops_t ops = make_ops();

} // namespace dtrain::rdm
