// Submits copies, and waits for them.
// SPDX-License-Identifier: Apache-2.0
#include "accel/own_queue.h"

#include "accel/quiet.h"
#include "base/clock.h"

#include <algorithm>
#include <new>
#include <sched.h>
#include <string>
#include <time.h>

namespace dtrain::accel {
namespace {

constexpr int spins = 2000, yields = 200;
constexpr int64_t nap = 50 * us, check_interval = 2 * ms;
constexpr int64_t most_idle = 10 * second; // of a queue that has work and is not held up

} // namespace

Status submit_copies(const dtrain_dv_ops_t &ops, dtrain_dv_queue_t *queue,
                     std::span<const Copy> copies, uint64_t longest, bool *begun) {
    for (const Copy &copy : copies)
        for (uint64_t done = 0; done < copy.bytes;) {
            const uint64_t bytes = std::min(copy.bytes - done, longest);
            Status s = ops.copy(queue, static_cast<uint8_t *>(copy.dst) + done,
                                static_cast<const uint8_t *>(copy.src) + done, bytes);
            if (s != DTRAIN_OK) return s;
            if (begun != nullptr) *begun = true;
            done += bytes;
        }
    return DTRAIN_OK;
}

Status OwnQueue::Posted::result() const {
    if (later == nullptr || !later->submitted.load(std::memory_order_acquire)) return DTRAIN_OK;
    if (later->status != DTRAIN_OK) set_error_text(later->text.c_str());
    return later->status;
}

Status OwnQueue::open(const dtrain_dv_ops_t &ops, dtrain_dv_dev_t *dev, const PinnedBlock &page,
                      uint64_t offset, uint64_t longest_copy, Waker *waker, CallThread *calls) {
    page_ = page.mem();
    offset_ = offset;
    longest_copy_ = longest_copy;
    waker_ = waker;
    calls_ = calls;
    word_ = new (page.host() + offset) std::atomic<uint32_t>(0);
    begun_ = new (page.host() + offset + sizeof *word_) std::atomic<uint32_t>(0);
    if (Status s = ops.queue_own(dev, 1, &queue_); s != DTRAIN_OK) return s;
    ops_ = &ops;
    return DTRAIN_OK;
}

void OwnQueue::close() {
    if (ops_ != nullptr) ops_->queue_free(queue_);
    ops_ = nullptr;
}

Status OwnQueue::submit_batch(const Work &work, uint32_t batch, bool &begun) {
    set_error_text("");
    Status status =
        streams_wait_.load(std::memory_order_relaxed) ? watch(batch) : Status{DTRAIN_OK};
    if (status == DTRAIN_OK) status = work(queue_, begun);
    const std::string text = error_text();
    const Status signalled = ops_->signal(queue_, page_, offset_, batch);
    if (status != DTRAIN_OK) set_error_text(text.c_str());
    return status != DTRAIN_OK ? status : signalled;
}

Status OwnQueue::submit(const Work &work, uint32_t &batch, bool &begun, bool wakes) {
    std::lock_guard lock(mutex_);
    batch = ++last_;
    return submit_now(work, batch, begun, wakes);
}

Status OwnQueue::submit_now(const Work &work, uint32_t batch, bool &begun, bool wakes) {
    const Status s = submit_batch(work, batch, begun);
    const std::string text = s != DTRAIN_OK ? error_text() : "";
    if (wakes) wake_after();
    if (s != DTRAIN_OK) set_error_text(text.c_str());
    return s;
}

Status OwnQueue::post(Work work, Posted &posted, bool &begun, bool wakes) {
    std::lock_guard lock(mutex_);
    posted = {++last_, nullptr};
    if (later_ == 0)
        if (const Quiet quiet; quiet) return submit_now(work, posted.batch, begun, wakes);
    const auto later = std::make_shared<Posted::Later>();
    later->posted_ns = monotonic_clock().now_ns();
    const auto submit_it = [this, work = std::move(work), later, batch = posted.batch, wakes] {
        later->status = submit_batch(work, batch, later->begun);
        if (later->status != DTRAIN_OK) later->text = error_text();
        later->submitted.store(true, std::memory_order_release);
        if (wakes) wake_after(); // by a call, which those who wait for the batch need not wait for
        std::lock_guard inner(mutex_);
        later_--;
    };
    if (Status s = calls_->give(submit_it); s != DTRAIN_OK) return s;
    begun = true;
    later_++;
    posted.later = later;
    return DTRAIN_OK;
}

Status OwnQueue::post(std::vector<Copy> copies, Posted &posted) {
    for (const Copy &copy : copies) count(copy.bytes);
    bool begun = false;
    return post(
        [this, copies = std::move(copies)](dtrain_dv_queue_t *queue, bool &) {
            return submit_copies(*ops_, queue, copies, longest_copy_);
        },
        posted, begun);
}

Status OwnQueue::check() {
    Status s = DTRAIN_OK;
    if (const Quiet quiet; quiet || calls_ == nullptr) {
        std::lock_guard lock(mutex_);
        s = ops_->queue_done(queue_);
    } else {
        s = calls_->check(queue_);
    }
    if (s != DTRAIN_OK && s != DTRAIN_IN_PROGRESS) return s;
    if (!is_held_up()) return DTRAIN_OK;
    return fail(DTRAIN_ERR_DEVICE,
                "the library's own work has not begun for %lld s: a stream that waits for an "
                "operation seems to hold it up; let the driver run more streams side by side "
                "(CUDA_DEVICE_MAX_CONNECTIONS), or call without a stream",
                static_cast<long long>(most_idle / second));
}

Status OwnQueue::check(const Posted &posted) {
    if (Status s = posted.result(); s != DTRAIN_OK) return s;
    if (Status s = check(); s != DTRAIN_OK) return s;
    if (posted.later == nullptr || posted.later->submitted.load(std::memory_order_acquire) ||
        monotonic_clock().now_ns() - posted.later->posted_ns < most_idle)
        return DTRAIN_OK;
    return fail(DTRAIN_ERR_DEVICE,
                "the accelerator's library has taken no work for %lld s: another thread of the "
                "program seems to be in a call that waits for streams, as those that free memory "
                "or load kernels do, and one of them waits for this operation; free and load "
                "before it, or after it has completed",
                static_cast<long long>(most_idle / second));
}

Status OwnQueue::watch(uint32_t batch) {
    {
        std::lock_guard lock(watched_);
        if (int32_t(last_watched_ - begun_->load(std::memory_order_acquire)) <= 0)
            seen_ns_ = monotonic_clock().now_ns();
    }
    const Status s = ops_->signal(queue_, page_, offset_ + sizeof *word_, batch);
    std::lock_guard lock(watched_);
    if (s == DTRAIN_OK) last_watched_ = batch;
    return s;
}

// A batch that has begun and takes long is not held up: the accelerator may be busy.
bool OwnQueue::is_held_up() {
    std::lock_guard lock(watched_);
    const uint32_t begun = begun_->load(std::memory_order_acquire);
    const int64_t now_ns = monotonic_clock().now_ns();
    if (begun != seen_begun_) {
        seen_begun_ = begun;
        seen_ns_ = now_ns;
    }
    const bool waits = int32_t(last_watched_ - begun) > 0 && passed(begun);
    return waits && now_ns - seen_ns_ >= most_idle;
}

Status OwnQueue::wait(const Posted &posted, int64_t deadline_ns) {
    Clock &clock = monotonic_clock();
    int64_t checked_ns = clock.now_ns();
    for (int i = 0; !passed(posted); i++) {
        if (i < spins) continue;
        const int64_t now_ns = clock.now_ns();
        if (now_ns >= deadline_ns)
            return fail(DTRAIN_ERR_TIMEOUT,
                        "timed out; the accelerator has not finished copying yet");
        if (now_ns - checked_ns >= check_interval) {
            checked_ns = now_ns;
            if (Status s = check(posted); s != DTRAIN_OK) return s;
        }
        if (i < spins + yields) {
            sched_yield();
            continue;
        }
        const timespec t = {0, nap};
        nanosleep(&t, nullptr);
    }
    return posted.result();
}

bool OwnQueue::is_idle() {
    std::lock_guard lock(mutex_);
    return passed(last_);
}

// A batch whose end could not be signalled is over when the queue has nothing left.
void OwnQueue::drain(int64_t deadline_ns) {
    if (ops_ == nullptr) return;
    const auto busy = [this] {
        std::lock_guard lock(mutex_);
        return later_ > 0 || (!passed(last_) && ops_->queue_done(queue_) == DTRAIN_IN_PROGRESS);
    };
    while (busy() && monotonic_clock().now_ns() < deadline_ns) {
        const timespec t = {0, nap};
        nanosleep(&t, nullptr);
    }
}

} // namespace dtrain::accel
