// Registered memory, put and get. The bytes are moved when the transfer arrives.
// SPDX-License-Identifier: Apache-2.0
#include "operations.h"

namespace dtrain::tp::sim {
namespace {

Registration &registration_of(dtrain_tp_mr_t *mr) { return *reinterpret_cast<Registration *>(mr); }

dtrain_status_t move(dtrain_tp_ep_t *ep, uint32_t kind, const dtrain_tp_iov_t *iov, uint32_t n,
                     uint64_t remote_addr, const void *rkey, uint64_t imm, uint64_t cookie) {
    Endpoint &endpoint = from(ep);
    std::lock_guard lock(endpoint.source->network.mutex());
    return guard([&]() -> dtrain_status_t {
        dtrain_status_t status = DTRAIN_OK;
        auto transfer = make_transfer(endpoint, kind, iov, n, cookie, status);
        if (!transfer) return status;
        memcpy(&transfer->region, rkey, sizeof transfer->region);
        transfer->remote_addr = remote_addr;
        transfer->imm = imm;
        const uint64_t bytes = transfer->length;
        return start(std::move(transfer), bytes);
    });
}

} // namespace

dtrain_status_t mr_reg(dtrain_tp_dev_t *dev, const dtrain_mem_params_t *mem,
                       dtrain_tp_mr_t **mr_p) {
    Device &device = from(dev);
    std::lock_guard lock(device.network.mutex());
    if (mem->mem_type != DTRAIN_MEM_AUTO && mem->mem_type != DTRAIN_MEM_HOST)
        return device.host.fail(DTRAIN_ERR_UNSUPPORTED, "sim: only host memory can be registered");
    if (!mem->address || !mem->length)
        return device.host.fail(DTRAIN_ERR_INVALID, "sim: cannot register an empty range");
    return guard([&]() -> dtrain_status_t {
        auto region = std::make_unique<Registration>(
            Registration{&device, device.network.next_id, reinterpret_cast<uintptr_t>(mem->address),
                         mem->length});
        device.network.regions.emplace(region->id, region.get());
        device.network.next_id++;
        *mr_p = reinterpret_cast<dtrain_tp_mr_t *>(region.release());
        return DTRAIN_OK;
    });
}

void mr_dereg(dtrain_tp_mr_t *mr) {
    std::unique_ptr<Registration> region(&registration_of(mr));
    std::lock_guard lock(region->device->network.mutex());
    region->device->network.regions.erase(region->id);
}

dtrain_status_t mr_rkey(dtrain_tp_mr_t *mr, void *buf, size_t len) {
    const Registration &region = registration_of(mr);
    if (len < sizeof region.id)
        return region.device->host.fail(DTRAIN_ERR_TRUNCATED,
                                        "sim: %zu bytes are too few for an rkey", len);
    memcpy(buf, &region.id, sizeof region.id);
    return DTRAIN_OK;
}

dtrain_status_t put(dtrain_tp_ep_t *ep, const dtrain_tp_iov_t *iov, uint32_t n,
                    uint64_t remote_addr, const void *rkey, uint64_t imm, uint64_t cookie) {
    return move(ep, DTRAIN_TP_PUT, iov, n, remote_addr, rkey, imm, cookie);
}

dtrain_status_t get(dtrain_tp_ep_t *ep, const dtrain_tp_iov_t *iov, uint32_t n,
                    uint64_t remote_addr, const void *rkey, uint64_t cookie) {
    return move(ep, DTRAIN_TP_GET, iov, n, remote_addr, rkey, 0, cookie);
}

} // namespace dtrain::tp::sim
