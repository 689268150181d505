// Shared memory between the processes (and threads) of one host: the table of operations.
// SPDX-License-Identifier: Apache-2.0
#include "shm/device.h"

extern "C" const dtrain_tp_plugin_t dtrain_tp_plugin_shm;

namespace dtrain::shm {
namespace {

constexpr char device_name[] = "host";

Device *device_of(dtrain_tp_dev_t *dev) { return reinterpret_cast<Device *>(dev); }
Endpoint *endpoint_of(dtrain_tp_ep_t *ep) { return reinterpret_cast<Endpoint *>(ep); }
Window *window_of(dtrain_tp_win_t *win) { return reinterpret_cast<Window *>(win); }

Status list(const dtrain_tp_host_t *host, char *names, size_t len) {
    Address own;
    bool usable = make_address(Host(host), own) == DTRAIN_OK;
    if (len < sizeof device_name) return DTRAIN_ERR_TRUNCATED;
    std::memcpy(names, usable ? device_name : "", usable ? sizeof device_name : 1);
    return DTRAIN_OK;
}

Status open(const dtrain_tp_host_t *host, const char *name, dtrain_tp_dev_t **dev_p) {
    if (std::strcmp(name, device_name) != 0)
        return Host(host).fail(DTRAIN_ERR_NOT_FOUND, "shm: no device \"%s\"; there is only \"%s\"",
                               name, device_name);
    auto *device = new (std::nothrow) Device(host);
    if (device == nullptr) return DTRAIN_ERR_NO_MEMORY;
    Status status = device->open();
    if (status != DTRAIN_OK) {
        delete device;
        return status;
    }
    *dev_p = reinterpret_cast<dtrain_tp_dev_t *>(device);
    return DTRAIN_OK;
}

// A forked child keeps the objects: their descriptors and segments it has not inherited.
void close(dtrain_tp_dev_t *dev) {
    if (!device_of(dev)->is_inherited()) delete device_of(dev);
}

Status query(dtrain_tp_dev_t *, dtrain_tp_attr_t *attr) {
    dtrain_tp_attr_t own{};
    own.max_iov = tp::max_iov;
    own.caps = DTRAIN_TP_CAP_WINDOW | DTRAIN_TP_CAP_EVENT_FD | DTRAIN_TP_CAP_PEER_LOST |
               DTRAIN_TP_CAP_GUARDED | DTRAIN_TP_CAP_WORDS;
    own.max_message = message_limit;
    own.eager_limit = eager_limit;
    own.latency_ns = 150;
    own.bandwidth_bps = 8'000'000'000;
    own.address_len = sizeof(Address);
    own.window_handle_len = sizeof(Name);
    own.numa_node = -1;
    return tp::answer(own, attr);
}

Status address(dtrain_tp_dev_t *dev, void *buf, size_t len) {
    const Address &own = device_of(dev)->own();
    if (len < sizeof own) return DTRAIN_ERR_TRUNCATED;
    std::memcpy(buf, &own, sizeof own);
    return DTRAIN_OK;
}

Status reachable(dtrain_tp_dev_t *dev, const void *address, size_t len) {
    Address peer;
    return check_reach(device_of(dev)->host(), device_of(dev)->own(), address, len, peer);
}

Status connect(dtrain_tp_dev_t *dev, const void *address, size_t len, uint64_t cookie,
               dtrain_tp_ep_t **ep_p) {
    Endpoint *endpoint;
    Status status = device_of(dev)->connect(address, len, cookie, &endpoint);
    if (status == DTRAIN_OK) *ep_p = reinterpret_cast<dtrain_tp_ep_t *>(endpoint);
    return status;
}

void disconnect(dtrain_tp_ep_t *ep) { endpoint_of(ep)->device().disconnect(endpoint_of(ep)); }

Status send(dtrain_tp_ep_t *ep, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
            uint64_t cookie) {
    return endpoint_of(ep)->send(tag, iov, n, cookie);
}

Status recv(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask, const dtrain_tp_iov_t *iov,
            uint32_t n, uint64_t cookie) {
    return device_of(dev)->recv(wanted, mask, iov, n, cookie);
}

void cancel(dtrain_tp_dev_t *dev, uint64_t cookie) { device_of(dev)->cancel(cookie); }

void purge(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask) {
    device_of(dev)->purge(wanted, mask);
}

int32_t progress(dtrain_tp_dev_t *dev, dtrain_tp_done_t *done, uint32_t max) {
    return device_of(dev)->progress(done, max);
}

int32_t event_fd(dtrain_tp_dev_t *dev) { return device_of(dev)->event_fd(); }

Status arm(dtrain_tp_dev_t *dev) { return device_of(dev)->arm(); }

Status window_create(dtrain_tp_dev_t *dev, uint64_t bytes, uint32_t members, uint32_t member,
                     void *handle, dtrain_tp_win_t **win_p) {
    Window *window;
    Status status = device_of(dev)->create_window({bytes, members}, member, handle, &window);
    if (status == DTRAIN_OK) *win_p = reinterpret_cast<dtrain_tp_win_t *>(window);
    return status;
}

Status window_attach(dtrain_tp_dev_t *dev, dtrain_tp_ep_t *creator, const void *handle,
                     uint64_t bytes, uint32_t members, uint32_t member, dtrain_tp_win_t **win_p) {
    Window *window;
    Status status = device_of(dev)->attach_window(endpoint_of(creator), handle, {bytes, members},
                                                  member, &window);
    if (status == DTRAIN_OK) *win_p = reinterpret_cast<dtrain_tp_win_t *>(window);
    return status;
}

void *window_address(dtrain_tp_win_t *win) { return window_of(win)->address(); }
void window_ring(dtrain_tp_win_t *win) { window_of(win)->ring(); }
void window_free(dtrain_tp_win_t *win) { window_of(win)->device().free_window(window_of(win)); }

uint64_t moved(dtrain_tp_dev_t *dev) { return device_of(dev)->moved(); }

constexpr dtrain_tp_ops_t ops = {
    .struct_size = sizeof(dtrain_tp_ops_t),
    .reserved = 0,
    .list = list,
    .open = open,
    .close = close,
    .query = query,
    .address = address,
    .reachable = reachable,
    .connect = connect,
    .disconnect = disconnect,
    .mr_reg = nullptr,
    .mr_dereg = nullptr,
    .mr_rkey = nullptr,
    .send = send,
    .recv = recv,
    .cancel = cancel,
    .purge = purge,
    .put = nullptr,
    .get = nullptr,
    .progress = progress,
    .event_fd = event_fd,
    .arm = arm,
    .window_create = window_create,
    .window_attach = window_attach,
    .window_address = window_address,
    .window_ring = window_ring,
    .window_free = window_free,
    .moved = moved,
    .counters = nullptr,
    .route = nullptr,
    .limit_eager = [](dtrain_tp_dev_t *dev, uint64_t bytes) { device_of(dev)->limit_eager(bytes); },
    .withdraw = [](dtrain_tp_dev_t *dev, uint64_t cookie) { device_of(dev)->withdraw(cookie); },
};

} // namespace
} // namespace dtrain::shm

const dtrain_tp_plugin_t dtrain_tp_plugin_shm = {
    .struct_size = sizeof(dtrain_tp_plugin_t),
    .abi = DTRAIN_TP_ABI,
    .name = "shm",
    .version = "0.1.0",
    .ops = &dtrain::shm::ops,
};
