// Describes buffers on an accelerator, finds those of the other ranks, and works on them.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/window/window_device.h"

#include "base/random.h"

#include <cstring>
#include <unistd.h>
#include <utility>

namespace dtrain::collectives {
namespace {

constexpr uint32_t looks_per_check = 256; // asking the accelerator's library costs more than a look
constexpr int32_t most_alltoall_ranks = 32; // the leader submits a copy for each pair

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
    out.before = landing_.scale().before;
    out.after = landing_.scale().after;
    std::memcpy(out.nonce, process_nonce().bytes, sizeof out.nonce);
    out.process = getpid();
}

bool WindowDevice::is_of_this_process(const DeviceOffer &offer) {
    return offer.process == getpid() &&
           std::memcmp(offer.nonce, process_nonce().bytes, sizeof offer.nonce) == 0;
}

bool WindowDevice::serves(const CollectiveSpec &spec) {
    if (over_graph(spec.kind) || spec.kind == Kind::barrier) return false;
    if (spec.kind != Kind::alltoall) return true;
    // In place it would overwrite what it has not read yet; the other ranks' counts are unknown.
    return !spec.in_place && spec.counts.empty() && spec.size <= most_alltoall_ranks;
}

uint32_t WindowDevice::kernels_for(const CollectiveSpec &spec, uint32_t dtype) {
    switch (spec.kind) {
    case Kind::allreduce:
    case Kind::reduce:
    case Kind::reduce_scatter: return dtype;
    default: return 0; // moves bytes
    }
}

WindowDevice::Need WindowDevice::need_of(uint32_t rank) const {
    CollectiveSpec its = spec_;
    its.rank = int32_t(rank);
    return {input_bytes(its), output_bytes(its)};
}

// A process cannot import its own memory, and need not.
uint8_t *WindowDevice::find(uint32_t rank, const DeviceOffer &offer,
                            const accel::DirectBuffer &buffer, uint64_t bytes) {
    if (is_of_this_process(offer)) return static_cast<uint8_t *>(buffer.address);
    return peers_.find(rank, buffer, bytes);
}

bool WindowDevice::map(uint32_t rank, const DeviceOffer &offer) {
    const Need need = need_of(rank);
    sends_[rank] = need.send > 0 ? find(rank, offer, offer.send, need.send) : nullptr;
    before_[rank] = offer.before;
    after_[rank] = offer.after;
    recvs_[rank] = need.recv > 0 ? find(rank, offer, offer.recv, need.recv) : nullptr;
    return (need.send == 0 || sends_[rank] != nullptr) &&
           (need.recv == 0 || recvs_[rank] != nullptr);
}

Status WindowDevice::import(uint32_t rank, const DeviceOffer &offer) {
    const Need need = need_of(rank);
    const bool has_send = need.send == 0 || sends_[rank] != nullptr;
    return peers_.import(*buffers_.domain, rank, has_send ? offer.recv : offer.send,
                         has_send ? need.recv : need.send);
}

void WindowDevice::want(uint32_t rank, const DeviceOffer &offer) {
    const Need need = need_of(rank);
    if (need.send > 0 && sends_[rank] == nullptr) peers_.want(rank, offer.send, need.send);
    if (need.recv > 0 && recvs_[rank] == nullptr) peers_.want(rank, offer.recv, need.recv);
}

// An all-reduce's input is multiplied into the rank's receive buffer, and read from there (input of
// other kinds is not scaled here); a result is multiplied where it lies.
DeviceJob WindowDevice::with_factors(DeviceJob job) const {
    DeviceJob first, last;
    const auto is_scaled = [&](uint32_t rank) {
        return spec_.kind == Kind::allreduce && before_[rank] != 1;
    };
    for (uint32_t rank = 0; rank < ranks_; rank++)
        if (is_scaled(rank))
            first.push_back({.from = {{rank, false, 0}},
                             .to = {{rank, true, 0}},
                             .bytes = need_of(rank).send,
                             .factor = before_[rank]});
    for (DeviceStep &step : job) {
        for (DevicePart &part : step.from) part.in_result = part.in_result || is_scaled(part.rank);
        for (const DevicePart &part : step.to)
            if (after_[part.rank] != 1)
                last.push_back({.from = {part},
                                .to = {part},
                                .bytes = step.bytes,
                                .factor = after_[part.rank]});
    }
    first.insert(first.end(), job.begin(), job.end());
    first.insert(first.end(), last.begin(), last.end());
    return first;
}

Status WindowDevice::submit(const DeviceJob &job, uint32_t dtype, uint32_t op) {
    std::vector<Task> tasks;
    for (const DeviceStep &step : with_factors(job)) tasks.push_back(task_of(step, dtype, op));
    const auto all = [tasks = std::move(tasks)](dtrain_dv_queue_t *queue, bool &begun) -> Status {
        for (const Task &task : tasks)
            if (Status s = task.submit(queue, begun); s != DTRAIN_OK) return s;
        return DTRAIN_OK;
    };
    if (Status s = buffers_.domain->kernels().post(all, posted_, begun_); s != DTRAIN_OK) {
        failure_ = accel::explain(s, buffers_.domain->name().c_str(), "submitting a kernel");
        failure_text_ = error_text();
        return failure_;
    }
    begun_ = true; // even if there was nothing to do
    return DTRAIN_OK;
}

WindowDevice::Task WindowDevice::task_of(const DeviceStep &step, uint32_t dtype,
                                         uint32_t op) const {
    Task task{.domain = buffers_.domain,
              .srcs = {},
              .dsts = {},
              .bytes = step.bytes,
              .factor = step.factor,
              .element_bytes = spec_.element_bytes,
              .dtype = dtype,
              .op = op};
    for (const DevicePart &part : step.from) task.srcs.push_back(at(part));
    for (const DevicePart &part : step.to) // in place a rank's own part is there already
        if (task.sums() || task.scales() || at(part) != task.srcs[0]) task.dsts.push_back(at(part));
    return task;
}

// A kernel that reads a part once is faster than a copy for each of several targets.
Status WindowDevice::Task::submit(dtrain_dv_queue_t *queue, bool &begun) const {
    if (bytes == 0 || dsts.empty()) return DTRAIN_OK;
    Status s = DTRAIN_OK;
    if (!sums() && !scales() && dsts.size() == 1) {
        const accel::Copy copy{.dst = dsts[0], .src = srcs[0], .bytes = bytes};
        s = accel::submit_copies(domain->ops(), queue, {&copy, 1}, domain->attr().limit_bytes,
                                 &begun);
    } else {
        dtrain_dv_work_t work{};
        work.struct_size = sizeof work;
        work.kind = scales() ? DTRAIN_DV_MULTIPLY : DTRAIN_DV_REDUCE;
        work.dtype = sums() || scales() ? dtype : 0;
        work.weights = &factor;
        work.op = sums() ? op : uint32_t{DTRAIN_SUM};
        work.count = work.dtype == 0 ? bytes : bytes / element_bytes;
        work.n = uint32_t(srcs.size());
        work.m = uint32_t(dsts.size());
        work.dsts = dsts.data();
        work.srcs = srcs.data();
        s = domain->ops().run(queue, &work);
        begun = begun || s == DTRAIN_OK;
    }
    if (s == DTRAIN_OK && !scales()) domain->count_done(sums(), bytes * dsts.size());
    return s;
}

Status WindowDevice::look() {
    if (failure_ != DTRAIN_OK) return set_error_text(failure_text_.c_str()), failure_;
    accel::OwnQueue &queue = buffers_.domain->kernels();
    if (Status s = posted_.result(); s != DTRAIN_OK) {
        begun_ = posted_.later->begun;
        return accel::explain(s, buffers_.domain->name().c_str(), "submitting a kernel");
    }
    if (queue.passed(posted_)) return DTRAIN_OK;
    if (++looks_ % looks_per_check != 0) return DTRAIN_IN_PROGRESS;
    const Status s = queue.check(posted_);
    if (s == DTRAIN_OK) return DTRAIN_IN_PROGRESS;
    return accel::explain(s, buffers_.domain->name().c_str(), "working on the ranks' buffers");
}

} // namespace dtrain::collectives
