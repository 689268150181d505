// Opens and closes an accelerator.
// SPDX-License-Identifier: Apache-2.0
#include "accel/domain.h"

#include "accel/stream_work.h"

#include "base/clock.h"

#include <algorithm>

namespace dtrain::accel {
namespace {

constexpr uint64_t page = 4096, cache_line = 64;
constexpr int64_t patience = 10 * second;

} // namespace

Status explain(Status status, const char *name, const char *operation) {
    if (error_text()[0] == 0) fail(status, "%s", status_text(status));
    return fail_within(status, "accelerator %s: %s", name, operation);
}

Status Domain::open(const dtrain_dv_ops_t &ops, const Host &host, const std::string &name,
                    const dtrain_dv_attr_t &attr, const Config &config,
                    std::unique_ptr<Domain> &out) {
    std::unique_ptr<Domain> made(new Domain(ops, name, attr, config));
    set_error_text("");
    Status s = ops.open(host.table(), name.c_str(), &made->dev_);
    if (s != DTRAIN_OK) {
        made->dev_ = nullptr;
        return explain(s, name.c_str(), "open");
    }
    made->pool_.emplace(ops, made->dev_, config.keep);
    const uint64_t longest = std::max<uint64_t>(attr.limit_bytes, 1);
    s = PinnedBlock::make(ops, made->dev_, page, made->words_);
    if (s == DTRAIN_OK)
        s = made->to_host_.open(ops, made->dev_, *made->words_, 0, longest, config.waker);
    if (s == DTRAIN_OK)
        s = made->to_device_.open(ops, made->dev_, *made->words_, cache_line, longest,
                                  config.waker);
    if (s == DTRAIN_OK)
        s = made->kernels_.open(ops, made->dev_, *made->words_, 2 * cache_line, longest,
                                config.waker);
    if (s != DTRAIN_OK) return explain(s, name.c_str(), "open");
    out = std::move(made);
    return DTRAIN_OK;
}

void Domain::drain() {
    const int64_t deadline_ns = monotonic_clock().now_ns() + patience;
    for (OwnQueue *queue : {&to_host_, &to_device_, &kernels_}) queue->drain(deadline_ns);
}

bool Domain::prepare(uint32_t dtype) {
    const uint64_t bit = uint64_t{1} << dtype;
    std::lock_guard lock(mutex_);
    if ((known_ & bit) == 0) {
        const Status s = ops_.prepare(dev_, dtype);
        if (s == DTRAIN_OK) prepared_ |= bit;
        if (s == DTRAIN_OK || s == DTRAIN_ERR_UNSUPPORTED) known_ |= bit;
    }
    return (prepared_ & bit) != 0;
}

void Domain::retire(dtrain_dv_mem_t *memory) {
    std::lock_guard lock(mutex_);
    retired_.push_back(memory);
    if (!kernels_.is_idle() || StreamWork::any_waits()) return;
    for (dtrain_dv_mem_t *one : retired_) ops_.release(one);
    retired_.clear();
}

Domain::~Domain() {
    drain();
    for (OwnQueue *queue : {&to_host_, &to_device_, &kernels_}) queue->close();
    for (dtrain_dv_mem_t *one : retired_) ops_.release(one);
    if (pool_) pool_->close();
    words_.reset();
    pool_.reset();
    if (dev_ != nullptr) ops_.close(dev_);
}

} // namespace dtrain::accel
