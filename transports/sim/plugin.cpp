// The transport "sim": devices of one process, connected by a simulated network. For tests.
// SPDX-License-Identifier: Apache-2.0
#include "operations.h"

#include <algorithm>
#include <sys/eventfd.h>
#include <unistd.h>

namespace dtrain::tp::sim {
namespace {

struct Address {
    char magic[4] = {'s', 'i', 'm', '1'};
    uint32_t device = 0;
    uint64_t nonce = 0;
};

// Finds the device of an address; false if the address is not of this network. out: nullptr if the
// device is closed.
bool parse(const Device &device, const void *address, size_t len, Address &out) {
    if (len != sizeof out) return false;
    memcpy(&out, address, sizeof out);
    return memcmp(out.magic, Address{}.magic, sizeof out.magic) == 0 &&
           out.nonce == device.network.nonce();
}

dtrain_status_t list(const dtrain_tp_host_t *host, char *names, size_t len) {
    if (len < sizeof "sim")
        return Host(host).fail(DTRAIN_ERR_TRUNCATED,
                               "sim: the buffer is too small for the list of devices");
    memcpy(names, "sim", sizeof "sim");
    return DTRAIN_OK;
}

dtrain_status_t open(const dtrain_tp_host_t *table, const char *name, dtrain_tp_dev_t **dev_p) {
    Host host(table);
    if (strcmp(name, "sim") != 0)
        return host.fail(DTRAIN_ERR_NOT_FOUND, "sim: the only device is \"sim\"");
    Settings settings;
    if (dtrain_status_t s = read_settings(host, settings); s != DTRAIN_OK) return s;
    return guard([&]() -> dtrain_status_t {
        Device *device = Network::join(settings, table);
        if (!device)
            return host.fail(DTRAIN_ERR_CONFIG,
                             "sim: network \"%s\" was created with other options",
                             settings.network);
        device->event_fd = Fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
        if (!device->event_fd) {
            Network::leave(device);
            return host.fail(DTRAIN_ERR_LIMIT, "sim: no event file descriptor");
        }
        *dev_p = reinterpret_cast<dtrain_tp_dev_t *>(device);
        return DTRAIN_OK;
    });
}

void close_device(dtrain_tp_dev_t *dev) { Network::leave(&from(dev)); }

dtrain_status_t query(dtrain_tp_dev_t *dev, dtrain_tp_attr_t *attr) {
    const Settings &settings = from(dev).network.settings();
    dtrain_tp_attr_t full = {};
    full.max_iov = max_iov;
    full.caps = DTRAIN_TP_CAP_PUT | DTRAIN_TP_CAP_GET | DTRAIN_TP_CAP_WINDOW |
                DTRAIN_TP_CAP_EVENT_FD | DTRAIN_TP_CAP_PEER_LOST;
    full.max_message = max_message;
    full.eager_limit = settings.eager;
    full.latency_ns = settings.latency;
    full.bandwidth_bps = settings.bandwidth;
    full.address_len = sizeof(Address);
    full.rkey_len = full.window_handle_len = sizeof(uint64_t);
    full.numa_node = -1;
    return answer(full, attr);
}

dtrain_status_t address(dtrain_tp_dev_t *dev, void *buf, size_t len) {
    const Device &device = from(dev);
    Address own;
    own.device = device.id;
    own.nonce = device.network.nonce();
    if (len < sizeof own)
        return device.host.fail(DTRAIN_ERR_TRUNCATED, "sim: %zu bytes are too few for an address",
                                len);
    memcpy(buf, &own, sizeof own);
    return DTRAIN_OK;
}

dtrain_status_t reachable(dtrain_tp_dev_t *dev, const void *to, size_t len) {
    Address parsed;
    if (parse(from(dev), to, len, parsed)) return DTRAIN_OK;
    return from(dev).host.fail(DTRAIN_ERR_UNSUPPORTED,
                               "sim: this is not an address of this network");
}

dtrain_status_t connect(dtrain_tp_dev_t *dev, const void *to, size_t len, uint64_t cookie,
                        dtrain_tp_ep_t **ep_p) {
    Device &device = from(dev);
    Network &network = device.network;
    Address parsed;
    if (!parse(device, to, len, parsed))
        return device.host.fail(DTRAIN_ERR_INVALID, "sim: this is not an address of this network");
    std::lock_guard lock(network.mutex());
    return guard([&]() -> dtrain_status_t {
        const uint64_t random = network.settings().seed ^ uint64_t { device.id } << 40 ^
                                uint64_t { parsed.device } << 16 ^ device.sequence;
        auto endpoint = std::make_unique<Endpoint>(
            Endpoint{&device, network.find(parsed.device), cookie, random});
        if (!device.completions.reserve()) throw std::bad_alloc(); // for PEER_LOST
        dtrain_status_t status = DTRAIN_OK;
        if (endpoint->target) {
            auto transfer = make_transfer(*endpoint, DTRAIN_TP_CONNECT, nullptr, 0, cookie, status);
            status = start(std::move(transfer), 0);
            if (status != DTRAIN_OK) {
                device.completions.unreserve();
                return status;
            }
        } else { // the reservation is used for its failure, since there is no peer to lose
            network.complete(device, {cookie, 0, 0, 0, DTRAIN_ERR_PEER, DTRAIN_TP_CONNECT, 0});
        }
        device.endpoints.push_back(endpoint.get());
        *ep_p = reinterpret_cast<dtrain_tp_ep_t *>(endpoint.release());
        return DTRAIN_OK;
    });
}

void disconnect(dtrain_tp_ep_t *ep) {
    Endpoint &endpoint = from(ep);
    Network &network = endpoint.source->network;
    std::lock_guard lock(network.mutex());
    network.disconnect(&endpoint);
}

int32_t progress(dtrain_tp_dev_t *dev, dtrain_tp_done_t *done, uint32_t max) {
    Device &device = from(dev);
    Network &network = device.network;
    std::lock_guard lock(network.mutex());
    if (device.armed) {
        device.armed = false;
        network.armed--;
    }
    network.poll(device);
    return device.completions.pop(done, max);
}

void limit_eager(dtrain_tp_dev_t *dev, uint64_t bytes) {
    Device &device = from(dev);
    std::lock_guard lock(device.network.mutex());
    device.most_eager = std::min(bytes, device.network.settings().eager);
}

int32_t event_fd(dtrain_tp_dev_t *dev) { return from(dev).event_fd.get(); }

dtrain_status_t arm(dtrain_tp_dev_t *dev) {
    Device &device = from(dev);
    Network &network = device.network;
    std::lock_guard lock(network.mutex());
    network.poll(device);
    if (!device.completions.empty() || network.held_up()) return DTRAIN_ERR_BUSY;
    if (device.armed) return DTRAIN_OK;
    uint64_t rings; // rings left over from an earlier sleep
    [[maybe_unused]] ssize_t ignored = read(device.event_fd.get(), &rings, sizeof rings);
    device.armed = true;
    network.armed++; // pairs with window_ring()
    return DTRAIN_OK;
}

constexpr dtrain_tp_ops_t ops = {
    .struct_size = sizeof(dtrain_tp_ops_t),
    .reserved = 0,
    .list = &list,
    .open = &open,
    .close = &close_device,
    .query = &query,
    .address = &address,
    .reachable = &reachable,
    .connect = &connect,
    .disconnect = &disconnect,
    .mr_reg = &mr_reg,
    .mr_dereg = &mr_dereg,
    .mr_rkey = &mr_rkey,
    .send = &send,
    .recv = &recv,
    .cancel = &cancel,
    .purge = &purge,
    .put = &put,
    .get = &get,
    .progress = &progress,
    .event_fd = &event_fd,
    .arm = &arm,
    .window_create = &window_create,
    .window_attach = &window_attach,
    .window_address = &window_address,
    .window_ring = &window_ring,
    .window_free = &window_free,
    .moved = nullptr,
    .counters = nullptr,
    .route = nullptr,
    .limit_eager = limit_eager,
    .withdraw = &withdraw,
};

} // namespace
} // namespace dtrain::tp::sim

extern "C" {
extern const dtrain_tp_plugin_t dtrain_tp_plugin_sim;
const dtrain_tp_plugin_t dtrain_tp_plugin_sim = {
    .struct_size = sizeof(dtrain_tp_plugin_t),
    .abi = DTRAIN_TP_ABI,
    .name = "sim",
    .version = "0.1.0",
    .ops = &dtrain::tp::sim::ops,
};
}
