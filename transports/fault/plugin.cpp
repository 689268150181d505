// The transport "fault": another transport that misbehaves as the options say. For tests.
// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <memory>
#include <new>

namespace dtrain::tp::fault {
namespace {

// Registrations and windows are wrapped only to find the transport to which they belong.
struct Region {
    Device *device;
    dtrain_tp_mr_t *inner;
};
struct Window {
    Device *device;
    dtrain_tp_win_t *inner;
};

Device &from(dtrain_tp_dev_t *dev) { return *reinterpret_cast<Device *>(dev); }
Endpoint &from(dtrain_tp_ep_t *ep) { return *reinterpret_cast<Endpoint *>(ep); }
Region &from(dtrain_tp_mr_t *mr) { return *reinterpret_cast<Region *>(mr); }
Window &from(dtrain_tp_win_t *win) { return *reinterpret_cast<Window *>(win); }

// The list with the wrapped transport's registrations.
class Pieces {
  public:
    Pieces(const dtrain_tp_iov_t *iov, uint32_t n) : n_(n) {
        if (!valid()) return;
        std::copy_n(iov, n, iov_);
        for (uint32_t i = 0; i < n; i++)
            if (iov[i].mr) iov_[i].mr = from(iov[i].mr).inner;
    }
    bool valid() const { return n_ <= max_iov; }
    const dtrain_tp_iov_t *data() const { return iov_; }

  private:
    dtrain_tp_iov_t iov_[max_iov];
    uint32_t n_;
};

dtrain_status_t too_many(const Device &device, uint32_t n) {
    return device.host.fail(DTRAIN_ERR_INVALID, "fault: %u pieces are more than the limit of %u", n,
                            max_iov);
}

dtrain_status_t find_inner(const dtrain_tp_host_t *table, Settings &settings,
                           const dtrain_tp_plugin_t *&plugin) {
    if (auto s = read_settings(Host(table), settings); s != DTRAIN_OK) return s;
    return table->plugin(table->self, settings.over, &plugin);
}

dtrain_status_t list(const dtrain_tp_host_t *table, char *names, size_t len) {
    Settings settings;
    const dtrain_tp_plugin_t *plugin = nullptr;
    if (auto s = find_inner(table, settings, plugin); s != DTRAIN_OK) return s;
    return plugin->ops->list(table, names, len);
}

dtrain_status_t open(const dtrain_tp_host_t *table, const char *name, dtrain_tp_dev_t **dev_p) {
    Settings settings;
    const dtrain_tp_plugin_t *plugin = nullptr;
    if (auto s = find_inner(table, settings, plugin); s != DTRAIN_OK) return s;
    std::unique_ptr<Device> device(new (std::nothrow) Device(table, *plugin, settings));
    if (!device) return DTRAIN_ERR_NO_MEMORY;
    if (auto s = device->ops.open(table, name, &device->inner); s != DTRAIN_OK) {
        device->inner = nullptr;
        return s;
    }
    dtrain_tp_attr_t attr = {};
    attr.struct_size = sizeof attr;
    if (auto s = device->ops.query(device->inner, &attr); s != DTRAIN_OK) return s;
    device->max_message = attr.max_message;
    *dev_p = reinterpret_cast<dtrain_tp_dev_t *>(device.release());
    return DTRAIN_OK;
}

void close(dtrain_tp_dev_t *dev) { delete &from(dev); }

dtrain_status_t query(dtrain_tp_dev_t *dev, dtrain_tp_attr_t *attr) {
    const Device &device = from(dev);
    dtrain_tp_attr_t full = {};
    full.struct_size = sizeof full;
    full.numa_node = -1;
    if (auto s = device.ops.query(device.inner, &full); s != DTRAIN_OK) return s;
    full.max_iov = std::min(full.max_iov, max_iov);
    if (device.settings.reset) full.caps |= DTRAIN_TP_CAP_PEER_LOST;
    return answer(full, attr);
}

dtrain_status_t address(dtrain_tp_dev_t *dev, void *buf, size_t len) {
    return from(dev).ops.address(from(dev).inner, buf, len);
}

dtrain_status_t reachable(dtrain_tp_dev_t *dev, const void *to, size_t len) {
    return from(dev).ops.reachable(from(dev).inner, to, len);
}

dtrain_status_t connect(dtrain_tp_dev_t *dev, const void *to, size_t len, uint64_t cookie,
                        dtrain_tp_ep_t **ep_p) {
    Endpoint *endpoint = nullptr;
    const dtrain_status_t status = from(dev).connect(to, len, cookie, &endpoint);
    if (status == DTRAIN_OK) *ep_p = reinterpret_cast<dtrain_tp_ep_t *>(endpoint);
    return status;
}

void disconnect(dtrain_tp_ep_t *ep) { from(ep).device->disconnect(&from(ep)); }

dtrain_status_t mr_reg(dtrain_tp_dev_t *dev, const dtrain_mem_params_t *mem,
                       dtrain_tp_mr_t **mr_p) {
    Device &device = from(dev);
    std::unique_ptr<Region> region(new (std::nothrow) Region{&device, nullptr});
    if (!region) return DTRAIN_ERR_NO_MEMORY;
    // A transport that needs no registration has no mr_reg().
    if (device.ops.mr_reg)
        if (auto s = device.ops.mr_reg(device.inner, mem, &region->inner); s != DTRAIN_OK) return s;
    *mr_p = reinterpret_cast<dtrain_tp_mr_t *>(region.release());
    return DTRAIN_OK;
}

void mr_dereg(dtrain_tp_mr_t *mr) {
    std::unique_ptr<Region> region(&from(mr));
    if (region->inner) region->device->ops.mr_dereg(region->inner);
}

dtrain_status_t mr_rkey(dtrain_tp_mr_t *mr, void *buf, size_t len) {
    const Region &region = from(mr);
    return region.inner ? region.device->ops.mr_rkey(region.inner, buf, len)
                        : region.device->host.fail(DTRAIN_ERR_UNSUPPORTED,
                                                   "fault: transport %s has no rkeys",
                                                   region.device->settings.over);
}

dtrain_status_t send(dtrain_tp_ep_t *ep, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                     uint64_t cookie) {
    const Pieces pieces(iov, n);
    if (!pieces.valid()) return too_many(*from(ep).device, n);
    return from(ep).device->send(from(ep), tag, pieces.data(), n, cookie);
}

dtrain_status_t recv(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask,
                     const dtrain_tp_iov_t *iov, uint32_t n, uint64_t cookie) {
    const Pieces pieces(iov, n);
    if (!pieces.valid()) return too_many(from(dev), n);
    return from(dev).ops.recv(from(dev).inner, wanted, mask, pieces.data(), n, cookie);
}

void cancel(dtrain_tp_dev_t *dev, uint64_t cookie) {
    from(dev).ops.cancel(from(dev).inner, cookie);
}

void purge(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask) {
    from(dev).ops.purge(from(dev).inner, wanted, mask);
}

dtrain_status_t put(dtrain_tp_ep_t *ep, const dtrain_tp_iov_t *iov, uint32_t n,
                    uint64_t remote_addr, const void *rkey, uint64_t imm, uint64_t cookie) {
    Endpoint &endpoint = from(ep);
    Device &device = *endpoint.device;
    const Pieces pieces(iov, n);
    if (!pieces.valid()) return too_many(device, n);
    return device.pass(endpoint, DTRAIN_TP_PUT, cookie, [&](uint64_t inner_cookie) {
        return device.ops.put(endpoint.inner, pieces.data(), n, remote_addr, rkey, imm,
                              inner_cookie);
    });
}

dtrain_status_t get(dtrain_tp_ep_t *ep, const dtrain_tp_iov_t *iov, uint32_t n,
                    uint64_t remote_addr, const void *rkey, uint64_t cookie) {
    Endpoint &endpoint = from(ep);
    Device &device = *endpoint.device;
    const Pieces pieces(iov, n);
    if (!pieces.valid()) return too_many(device, n);
    return device.pass(endpoint, DTRAIN_TP_GET, cookie, [&](uint64_t inner_cookie) {
        return device.ops.get(endpoint.inner, pieces.data(), n, remote_addr, rkey, inner_cookie);
    });
}

int32_t progress(dtrain_tp_dev_t *dev, dtrain_tp_done_t *done, uint32_t max) {
    return from(dev).progress(done, max);
}

int32_t event_fd(dtrain_tp_dev_t *dev) {
    return from(dev).ops.event_fd ? from(dev).ops.event_fd(from(dev).inner) : -1;
}

dtrain_status_t arm(dtrain_tp_dev_t *dev) {
    Device &device = from(dev);
    if (!device.ops.arm)
        return device.host.fail(DTRAIN_ERR_UNSUPPORTED,
                                "fault: the wrapped transport cannot be armed");
    return device.idle() ? device.ops.arm(device.inner) : DTRAIN_ERR_BUSY;
}

void limit_eager(dtrain_tp_dev_t *dev, uint64_t bytes) {
    if (from(dev).ops.limit_eager) from(dev).ops.limit_eager(from(dev).inner, bytes);
}

dtrain_status_t window_create(dtrain_tp_dev_t *dev, uint64_t bytes, uint32_t members,
                              uint32_t member, void *handle, dtrain_tp_win_t **win_p) {
    Device &device = from(dev);
    std::unique_ptr<Window> window(new (std::nothrow) Window{&device, nullptr});
    if (!window) return DTRAIN_ERR_NO_MEMORY;
    const dtrain_status_t status =
        device.ops.window_create(device.inner, bytes, members, member, handle, &window->inner);
    if (status == DTRAIN_OK) *win_p = reinterpret_cast<dtrain_tp_win_t *>(window.release());
    return status;
}

dtrain_status_t window_attach(dtrain_tp_dev_t *dev, dtrain_tp_ep_t *creator, const void *handle,
                              uint64_t bytes, uint32_t members, uint32_t member,
                              dtrain_tp_win_t **win_p) {
    Device &device = from(dev);
    if (!from(creator).inner) return device.refuse_broken();
    std::unique_ptr<Window> window(new (std::nothrow) Window{&device, nullptr});
    if (!window) return DTRAIN_ERR_NO_MEMORY;
    const dtrain_status_t status = device.ops.window_attach(
        device.inner, from(creator).inner, handle, bytes, members, member, &window->inner);
    if (status == DTRAIN_OK) *win_p = reinterpret_cast<dtrain_tp_win_t *>(window.release());
    return status;
}

void *window_address(dtrain_tp_win_t *win) {
    return from(win).device->ops.window_address(from(win).inner);
}

void window_ring(dtrain_tp_win_t *win) { from(win).device->ops.window_ring(from(win).inner); }

void window_free(dtrain_tp_win_t *win) {
    std::unique_ptr<Window> window(&from(win));
    window->device->ops.window_free(window->inner);
}

constexpr dtrain_tp_ops_t table = {
    .struct_size = sizeof(dtrain_tp_ops_t),
    .reserved = 0,
    .list = &list,
    .open = &open,
    .close = &close,
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
    .limit_eager = &limit_eager,
    .withdraw = [](dtrain_tp_dev_t *dev, uint64_t cookie) { from(dev).withdraw(cookie); },
};

} // namespace
} // namespace dtrain::tp::fault

extern "C" {
extern const dtrain_tp_plugin_t dtrain_tp_plugin_fault;
const dtrain_tp_plugin_t dtrain_tp_plugin_fault = {
    .struct_size = sizeof(dtrain_tp_plugin_t),
    .abi = DTRAIN_TP_ABI,
    .name = "fault",
    .version = "0.1.0",
    .ops = &dtrain::tp::fault::table,
};
}
