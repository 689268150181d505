// Counts the calls that an accelerator has yet to make.
// SPDX-License-Identifier: Apache-2.0
#include "accel/waker.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <utility>

namespace dtrain::accel {

Status Waker::make(int wake_fd, Owner &out) {
    Fd fd(fcntl(wake_fd, F_DUPFD_CLOEXEC, 0));
    if (!fd) return fail_errno(errno, "a duplicate of an eventfd");
    out.reset(new Waker(std::move(fd)));
    return DTRAIN_OK;
}

void Waker::call_after(const dtrain_dv_ops_t &ops, dtrain_dv_queue_t *queue) {
    if (ops.call == nullptr) return;
    keepers_.fetch_add(1, std::memory_order_relaxed);
    if (ops.call(queue, called, this) != DTRAIN_OK) release();
}

void Waker::called(void *self) {
    auto *waker = static_cast<Waker *>(self);
    eventfd_write(waker->fd_.get(), 1);
    waker->release();
}

void Waker::release() {
    if (keepers_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

} // namespace dtrain::accel
