// Waits in reform(), and says what the next generation of an elastic job is for this process.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/session/job_state.h"

#include <algorithm>
#include <cerrno>
#include <sys/eventfd.h>

namespace dtrain::cluster {

Status Job::State::reform(wire::ReformRequest request, wire::Moved &moved) {
    Mover mover{request.group};
    mover.wake = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!mover.wake) return fail_errno(errno, "reform: eventfd");
    const int64_t timeout = request.timeout_ns < 0 ? INT64_MAX : request.timeout_ns;
    int64_t deadline = INT64_MAX;
    if (__builtin_add_overflow(now_ns(), timeout, &deadline)) deadline = INT64_MAX;
    // The coordinator gives up earlier, so that its answer, with the better text, arrives by then.
    request.timeout_ns = timeout - timeout / 8;
    {
        std::lock_guard lock(mutex_);
        if (status_ != DTRAIN_OK) return fail(status_, "%s", text_.c_str());
        if (Status s = driver_.reform(std::move(request), mover.attempt, now_ns()); s != DTRAIN_OK)
            return s;
        movers_.push_back(&mover);
        // There may be an earlier deadline; a coordinator in this process has perhaps answered.
        driver_.wake();
    }
    const struct Listed {
        State &state;
        Mover &mover;
        ~Listed() {
            std::lock_guard lock(state.mutex_);
            std::erase(state.movers_, &mover);
        }
    } listed{*this, mover};
    for (;;) {
        work();
        std::unique_lock lock(mutex_);
        if (mover.moved) break;
        if (status_ != DTRAIN_OK) return fail(status_, "%s", text_.c_str());
        if (now_ns() >= deadline)
            return fail(
                DTRAIN_ERR_TIMEOUT,
                "reform: no answer from a coordinator within %lld ms; the timeout should be "
                "longer than three times heartbeat.timeout",
                static_cast<long long>(timeout / ms));
        const int64_t until = std::min(deadline, driver_.next_deadline());
        lock.unlock();
        wait(until, mover.wake.get());
    }
    // By then the caller knows which members were lost before the answer.
    std::lock_guard told(delivery_);
    moved = std::move(*mover.moved);
    return moved.status == DTRAIN_OK ? DTRAIN_OK : fail(moved.status, "%s", moved.text.c_str());
}

void Job::State::note_moved(const wire::Moved &moved) {
    for (Mover *mover : movers_) {
        if (mover->group != moved.group || mover->attempt != moved.attempt) continue;
        mover->moved = moved;
        eventfd_write(mover->wake.get(), 1);
    }
}

uint32_t Job::State::newcomers() const {
    std::lock_guard lock(mutex_);
    return newcomers_;
}

Status Job::State::listen(Fd &out) {
    std::lock_guard lock(mutex_);
    return driver_.listen(out);
}

Fd Job::State::release_door() {
    std::lock_guard lock(mutex_);
    return driver_.release_door();
}

void Job::State::open_door(Fd taken) {
    std::lock_guard lock(mutex_);
    if (left_) return;
    driver_.open_door(std::move(taken), now_ns());
    driver_.wake();
}

Fd Job::State::move_on() {
    std::lock_guard lock(mutex_);
    moved_on_ = true;
    return driver_.share_listener();
}

} // namespace dtrain::cluster
