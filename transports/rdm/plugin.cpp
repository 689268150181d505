// The table of a transport that consists of a wire and the connections of this folder.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/plugin.h"
#include "common/operations.h"
#include "rdm/registrations.h"

namespace dtrain::rdm {
namespace {

// A device over the wire of the transport.
class WiredDevice final : public Device {
  public:
    using Device::Device;
    static const char *transport_name() { return rdm::transport_name; }
    static dtrain_status_t list(const tp::Host &host, std::string *names) {
        return list_devices(host, names);
    }
    static std::unique_ptr<WiredDevice> make(const dtrain_tp_host_t *host, const char *name) {
        std::unique_ptr<WiredDevice> device(new (std::nothrow)
                                                WiredDevice(host, kind_of(name).c_str()));
        if (device) device->made_ = make_wire(device->host(), device->protocol());
        return device && device->made_ ? std::move(device) : nullptr;
    }
    dtrain_status_t open(const char *name) { return Device::open(std::move(made_), name); }

  private:
    std::unique_ptr<Wire> made_; // until it is opened
};

constexpr dtrain_tp_ops_t make_ops() {
    using Base = tp::Operations<WiredDevice>;
    dtrain_tp_ops_t ops = Base::table();
    ops.mr_reg = [](dtrain_tp_dev_t *dev, const dtrain_mem_params_t *mem, dtrain_tp_mr_t **mr_p) {
        return Base::from(dev).reg(*mem, mr_p);
    };
    ops.mr_dereg = [](dtrain_tp_mr_t *mr) {
        if (mr->wire)
            mr->wire->dereg(mr);
        else
            delete static_cast<Registered *>(mr);
    };
    ops.mr_rkey = [](dtrain_tp_mr_t *mr, void *buf, size_t len) {
        return mr->wire ? mr->wire->rkey(mr, buf, len) : DTRAIN_OK; // its keys have no bytes
    };
    ops.put = [](dtrain_tp_ep_t *ep, const dtrain_tp_iov_t *iov, uint32_t n, uint64_t remote_addr,
                 const void *rkey, uint64_t imm, uint64_t cookie) {
        Endpoint &endpoint = Base::from(ep);
        return endpoint.device().put(&endpoint, iov, n, {remote_addr, rkey}, imm, cookie);
    };
    ops.get = [](dtrain_tp_ep_t *ep, const dtrain_tp_iov_t *iov, uint32_t n, uint64_t remote_addr,
                 const void *rkey, uint64_t cookie) {
        Endpoint &endpoint = Base::from(ep);
        return endpoint.device().get(&endpoint, iov, n, {remote_addr, rkey}, cookie);
    };
    ops.counters = [](dtrain_tp_dev_t *dev, dtrain_tp_counters_t *counters) {
        return Base::from(dev).counters(counters);
    };
    return ops;
}

} // namespace

const dtrain_tp_ops_t ops = make_ops();

} // namespace dtrain::rdm
