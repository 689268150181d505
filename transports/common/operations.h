// The table of C functions of a transport, made from the class of its devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"
#include "common/route.h"

#include <memory>
#include <string>

namespace dtrain::tp {

// Contains the functions that every transport over a network has; a transport adds its others.
// Device has them as members of the same names, and
//   Endpoint          the class of its endpoints, which has device(),
//   transport_name()  the beginning of error texts,
//   list(host, &names)  as dtrain_tp_ops_t::list(),
//   make(host, name)  a device, for open(name); nullptr: no memory,
//   address_length    bytes that address() writes.
// The last five are static.
template <class Device> class Operations {
  public:
    static constexpr dtrain_tp_ops_t table() {
        dtrain_tp_ops_t ops{};
        ops.struct_size = sizeof ops;
        ops.list = list;
        ops.open = open;
        ops.close = [](dtrain_tp_dev_t *dev) { delete &from(dev); };
        ops.query = [](dtrain_tp_dev_t *dev, dtrain_tp_attr_t *attr) {
            return from(dev).query(attr);
        };
        ops.address = address;
        ops.reachable = [](dtrain_tp_dev_t *dev, const void *address, size_t len) {
            return from(dev).reachable(address, len);
        };
        ops.connect = connect;
        ops.disconnect = [](dtrain_tp_ep_t *ep) { from(ep).device().disconnect(&from(ep)); };
        ops.send = [](dtrain_tp_ep_t *ep, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                      uint64_t cookie) {
            return from(ep).device().send(&from(ep), tag, iov, n, cookie);
        };
        ops.recv = [](dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask,
                      const dtrain_tp_iov_t *iov, uint32_t n,
                      uint64_t cookie) { return from(dev).recv(wanted, mask, iov, n, cookie); };
        ops.cancel = [](dtrain_tp_dev_t *dev, uint64_t cookie) { from(dev).cancel(cookie); };
        ops.purge = [](dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask) {
            from(dev).purge(wanted, mask);
        };
        ops.progress = [](dtrain_tp_dev_t *dev, dtrain_tp_done_t *done, uint32_t max) {
            return from(dev).progress(done, max);
        };
        ops.event_fd = [](dtrain_tp_dev_t *dev) -> int32_t { return from(dev).event_fd(); };
        ops.arm = [](dtrain_tp_dev_t *dev) { return from(dev).arm(); };
        ops.moved = [](dtrain_tp_dev_t *dev) { return from(dev).moved(); };
        ops.route = route;
        ops.limit_eager = [](dtrain_tp_dev_t *dev, uint64_t bytes) {
            from(dev).limit_eager(bytes);
        };
        ops.withdraw = [](dtrain_tp_dev_t *dev, uint64_t cookie) { from(dev).withdraw(cookie); };
        return ops;
    }

    using Endpoint = typename Device::Endpoint;
    static Device &from(dtrain_tp_dev_t *dev) { return *reinterpret_cast<Device *>(dev); }
    static Endpoint &from(dtrain_tp_ep_t *ep) { return *reinterpret_cast<Endpoint *>(ep); }

  private:
    static dtrain_status_t list(const dtrain_tp_host_t *host, char *names, size_t len) {
        std::string all;
        const dtrain_status_t status = Device::list(Host(host), &all);
        if (status != DTRAIN_OK) return status;
        if (all.size() >= len) return DTRAIN_ERR_TRUNCATED;
        memcpy(names, all.c_str(), all.size() + 1);
        return DTRAIN_OK;
    }
    static dtrain_status_t open(const dtrain_tp_host_t *host, const char *name,
                                dtrain_tp_dev_t **dev_p) {
        std::unique_ptr<Device> device = Device::make(host, name);
        if (!device)
            return Host(host).fail(DTRAIN_ERR_NO_MEMORY, "%s: no memory for a device",
                                   Device::transport_name());
        const dtrain_status_t status = device->open(name);
        if (status == DTRAIN_OK) *dev_p = reinterpret_cast<dtrain_tp_dev_t *>(device.release());
        return status;
    }
    static dtrain_status_t address(dtrain_tp_dev_t *dev, void *buf, size_t len) {
        if (len < Device::address_length)
            return from(dev).host().fail(DTRAIN_ERR_TRUNCATED, "%s: an address needs %zu bytes",
                                         Device::transport_name(), Device::address_length);
        return from(dev).address(static_cast<uint8_t *>(buf));
    }
    static dtrain_status_t connect(dtrain_tp_dev_t *dev, const void *address, size_t len,
                                   uint64_t cookie, dtrain_tp_ep_t **ep_p) {
        Endpoint *endpoint;
        const dtrain_status_t status = from(dev).connect(address, len, cookie, &endpoint);
        if (status == DTRAIN_OK) *ep_p = reinterpret_cast<dtrain_tp_ep_t *>(endpoint);
        return status;
    }
    static dtrain_status_t route(dtrain_tp_dev_t *dev, const void *address, size_t len, char *text,
                                 size_t text_len) {
        std::string answer;
        const dtrain_status_t status = from(dev).route(address, len, &answer);
        return status == DTRAIN_OK ? answer_text(answer, text, text_len) : status;
    }
};

} // namespace dtrain::tp
