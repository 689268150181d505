// A ring of events whose eventfd is readable while it is not empty.
// SPDX-License-Identifier: Apache-2.0
#include "engine/completion_queue.h"

#include <algorithm>
#include <cerrno>
#include <sys/eventfd.h>

namespace dtrain::engine {

Status CompletionQueue::create(uint32_t depth, std::unique_ptr<CompletionQueue> &out) {
    auto queue = std::make_unique<CompletionQueue>();
    queue->ring_.resize(depth);
    queue->fd_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!queue->fd_) return fail_errno(errno, "completion queue: eventfd");
    out = std::move(queue);
    return DTRAIN_OK;
}

bool CompletionQueue::reserve() {
    if (reserved_.fetch_add(1) < ring_.size()) return true;
    reserved_.fetch_sub(1);
    return false;
}

void CompletionQueue::unreserve() { reserved_.fetch_sub(1); }

void CompletionQueue::push(const dtrain_event_t &event) {
    std::lock_guard lock(mutex_);
    uint32_t count = count_.load(std::memory_order_relaxed);
    ring_[(head_ + count) % ring_.size()] = event;
    count_.store(count + 1, std::memory_order_release);
    if (count == 0) eventfd_write(fd_.get(), 1);
}

uint32_t CompletionQueue::take(dtrain_event_t *events, uint32_t max) {
    std::lock_guard lock(mutex_);
    uint32_t count = count_.load(std::memory_order_relaxed), n = std::min(max, count);
    for (uint32_t i = 0; i < n; i++) events[i] = ring_[(head_ + i) % ring_.size()];
    head_ = uint32_t((head_ + n) % ring_.size());
    count_.store(count - n, std::memory_order_release);
    reserved_.fetch_sub(n);
    if (n > 0 && n == count) {
        eventfd_t value;
        eventfd_read(fd_.get(), &value);
    }
    return n;
}

} // namespace dtrain::engine
