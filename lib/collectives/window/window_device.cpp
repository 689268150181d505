// Describes buffers on an accelerator, finds those of the other ranks, and sums them by a kernel.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/window/window_device.h"

#include "base/random.h"

#include <cstring>
#include <unistd.h>

namespace dtrain::collectives {
namespace {

constexpr uint32_t looks_per_check = 256; // asking the accelerator's library costs more than a look

// Equal for all contexts of the process, and no others: in other pid namespaces the same number may
// be another process, and a child made by fork() has the same nonce.
struct ProcessNonce {
    uint8_t bytes[sizeof DeviceOffer::nonce];
    ProcessNonce() { random_bytes(bytes, sizeof bytes); }
};
const ProcessNonce &process_nonce() {
    static const ProcessNonce nonce;
    return nonce;
}

} // namespace

void WindowDevice::describe(DeviceOffer &out) const {
    out.send = buffers_.send;
    out.recv = buffers_.recv;
    std::memcpy(out.nonce, process_nonce().bytes, sizeof out.nonce);
    out.process = getpid();
}

bool WindowDevice::is_of_this_process(const DeviceOffer &offer) {
    return offer.process == getpid() &&
           std::memcmp(offer.nonce, process_nonce().bytes, sizeof offer.nonce) == 0;
}

// A process cannot import its own memory, and need not.
bool WindowDevice::map(uint32_t rank, const DeviceOffer &offer) {
    void *send = offer.send.address, *recv = offer.recv.address;
    if (!is_of_this_process(offer)) {
        send = peers_.find(rank, offer.send, bytes_);
        if (send == nullptr) return false;
        if (recv != nullptr) {
            recv = peers_.find(rank, offer.recv, bytes_);
            if (recv == nullptr) return false;
        }
    }
    sends_[rank] = send;
    if (recv != nullptr) recvs_[results_++] = recv;
    return true;
}

Status WindowDevice::import(uint32_t rank, const DeviceOffer &offer) {
    const bool has_send = peers_.find(rank, offer.send, bytes_) != nullptr;
    return peers_.import(*buffers_.domain, rank, has_send ? offer.recv : offer.send, bytes_);
}

Status WindowDevice::submit(uint32_t dtype, uint32_t op, uint64_t count) {
    dtrain_dv_work_t work{};
    work.struct_size = sizeof work;
    work.kind = DTRAIN_DV_REDUCE;
    work.dtype = dtype;
    work.op = op;
    work.count = count;
    work.dsts = recvs_;
    work.srcs = sends_;
    work.m = results_;
    work.n = ranks_;
    accel::OwnQueue &queue = buffers_.domain->kernels();
    if (Status s = queue.submit(work, batch_, begun_); s != DTRAIN_OK) {
        failure_ = accel::explain(s, buffers_.domain->name().c_str(), "submitting a kernel");
        failure_text_ = error_text();
        return failure_;
    }
    queue.count(bytes_ * results_);
    return DTRAIN_OK;
}

Status WindowDevice::look() {
    if (failure_ != DTRAIN_OK) return set_error_text(failure_text_.c_str()), failure_;
    accel::OwnQueue &queue = buffers_.domain->kernels();
    if (queue.passed(batch_)) return DTRAIN_OK;
    if (++looks_ % looks_per_check != 0) return DTRAIN_IN_PROGRESS;
    const Status s = queue.check();
    if (s == DTRAIN_OK) return DTRAIN_IN_PROGRESS;
    return accel::explain(s, buffers_.domain->name().c_str(), "summing the ranks' buffers");
}

} // namespace dtrain::collectives
