// Opens and closes an accelerator.
// SPDX-License-Identifier: Apache-2.0
#include "accel/domain.h"

#include "accel/quiet.h"

#include "base/clock.h"

#include <algorithm>
#include <time.h>

namespace dtrain::accel {
namespace {

constexpr uint64_t page = 4096, cache_line = 64;
constexpr int64_t patience = 10 * second, pause = 1 * ms;

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
    // What opening has loaded need not wait until no stream does.
    for (uint32_t dtype :
         {uint32_t{0}, uint32_t{DTRAIN_F32}, uint32_t{DTRAIN_BF16}, uint32_t{DTRAIN_F16}})
        if (ops.prepare(made->dev_, dtype) == DTRAIN_OK) made->set_prepared(dtype);
    made->pool_.emplace(ops, made->dev_, config.keep);
    const uint64_t longest = std::max<uint64_t>(attr.limit_bytes, 1);
    s = PinnedBlock::make(ops, made->dev_, page, made->words_);
    if (s == DTRAIN_OK)
        s = made->to_host_.open(ops, made->dev_, *made->words_, 0, longest, config.waker,
                                &made->calls_);
    if (s == DTRAIN_OK)
        s = made->to_device_.open(ops, made->dev_, *made->words_, cache_line, longest, config.waker,
                                  &made->calls_);
    if (s == DTRAIN_OK)
        s = made->kernels_.open(ops, made->dev_, *made->words_, 2 * cache_line, longest,
                                config.waker, &made->calls_);
    if (s != DTRAIN_OK) return explain(s, name.c_str(), "open");
    out = std::move(made);
    return DTRAIN_OK;
}

void Domain::drain() {
    const int64_t deadline_ns = monotonic_clock().now_ns() + patience;
    for (OwnQueue *queue : {&to_host_, &to_device_, &kernels_}) queue->drain(deadline_ns);
}

void Domain::set_prepared(uint32_t dtype) {
    known_ |= uint64_t{1} << dtype;
    prepared_ |= uint64_t{1} << dtype;
}

bool Domain::prepare(uint32_t dtype, int64_t until_ns) {
    const uint64_t bit = uint64_t{1} << dtype;
    std::unique_lock lock(mutex_);
    while ((known_ & bit) == 0) {
        const Quiet quiet;
        if (!quiet) {
            if (monotonic_clock().now_ns() >= until_ns)
                return set_error_text("its kernels cannot be loaded while streams wait for "
                                      "operations of this process"),
                       false;
            lock.unlock();
            const timespec t = {0, pause};
            nanosleep(&t, nullptr);
            lock.lock();
            continue;
        }
        const Status s = ops_.prepare(dev_, dtype);
        if (s == DTRAIN_OK) set_prepared(dtype);
        if (s == DTRAIN_ERR_UNSUPPORTED) known_ |= bit;
        if ((known_ & bit) == 0) return false;
    }
    return (prepared_ & bit) != 0;
}

void Domain::retire(dtrain_dv_mem_t *memory) {
    std::lock_guard lock(mutex_);
    if (memory != nullptr) retired_.push_back(memory);
    const Quiet quiet;
    if (!quiet || !kernels_.is_idle()) return;
    for (dtrain_dv_mem_t *one : retired_) ops_.release(one);
    retired_.clear();
}

Domain::~Domain() {
    calls_.finish();
    drain();
    for (OwnQueue *queue : {&to_host_, &to_device_, &kernels_}) queue->close();
    for (dtrain_dv_mem_t *one : retired_) ops_.release(one);
    if (pool_) pool_->close();
    words_.reset();
    pool_.reset();
    if (dev_ != nullptr) ops_.close(dev_);
}

} // namespace dtrain::accel
