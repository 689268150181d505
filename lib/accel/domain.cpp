// Opens and closes an accelerator.
// SPDX-License-Identifier: Apache-2.0
#include "accel/domain.h"

#include "accel/postponed.h"
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

Status Domain::open(const dtrain_dv_ops_t &ops, std::shared_ptr<Host> host, const std::string &name,
                    const dtrain_dv_attr_t &attr, const Config &config,
                    std::shared_ptr<Domain> &out) {
    std::shared_ptr<Domain> made(new Domain(ops, std::move(host), name, attr, config));
    set_error_text("");
    const Status s = made->open_parts();
    if (s == DTRAIN_OK) return out = std::move(made), s;
    explain(s, name.c_str(), "open");
    const std::string why = error_text();
    end(std::move(made));
    set_error_text(why.c_str());
    return s;
}

Status Domain::open_parts() {
    if (Status s = ops_.open(host_->table(), name_.c_str(), &dev_); s != DTRAIN_OK) {
        dev_ = nullptr;
        return s;
    }
    // What opening has loaded need not wait until no stream does.
    for (uint32_t dtype :
         {uint32_t{0}, uint32_t{DTRAIN_F32}, uint32_t{DTRAIN_BF16}, uint32_t{DTRAIN_F16}})
        if (ops_.prepare(dev_, dtype) == DTRAIN_OK) set_prepared(dtype);
    pool_.emplace(ops_, dev_, config_.keep);
    const uint64_t longest = std::max<uint64_t>(attr_.limit_bytes, 1);
    Status s = PinnedBlock::make(ops_, dev_, page, words_);
    uint64_t offset = 0;
    for (OwnQueue *queue : {&to_host_, &to_device_, &kernels_}) {
        if (s == DTRAIN_OK)
            s = queue->open(ops_, dev_, *words_, offset, longest, config_.waker, &calls_);
        offset += cache_line;
    }
    return s;
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
    Postponed::make([self = shared_from_this(), memory] {
        if (!self->kernels_.is_idle()) return false;
        self->ops_.release(memory);
        return true;
    });
}

void Domain::after_wait() {
    if (Postponed::any()) (void)calls_.give(Postponed::make_all);
}

void Domain::end(std::shared_ptr<Domain> domain) {
    domain->calls_.finish();
    domain->drain();
    Postponed::make([domain = std::move(domain)]() mutable {
        domain.reset();
        return true;
    });
}

Domain::~Domain() {
    for (OwnQueue *queue : {&to_host_, &to_device_, &kernels_}) queue->close();
    if (pool_) pool_->close();
    words_.reset();
    pool_.reset();
    if (dev_ != nullptr) ops_.close(dev_);
}

} // namespace dtrain::accel
