// Waits in form_group(): asks for a new group until the coordinator answers.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/session/job_state.h"

#include <algorithm>
#include <cerrno>
#include <sys/eventfd.h>

namespace dtrain::cluster {

Status Job::State::form_group(GroupAttempt &attempt, int64_t timeout_ns, NewGroup &result) {
    Waiter waiter{attempt, Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), 0, std::nullopt};
    if (!waiter.wake) return fail_errno(errno, "making a group: eventfd");
    int64_t deadline = INT64_MAX;
    if (timeout_ns < 0 || __builtin_add_overflow(now_ns(), timeout_ns, &deadline))
        deadline = INT64_MAX;
    if (Status s = enlist(waiter); s != DTRAIN_OK) return s;
    const struct Listed {
        State &state;
        Waiter &waiter;
        ~Listed() { state.strike(waiter); }
    } listed{*this, waiter};
    Status s = DTRAIN_OK;
    do {
        if (waiter.reply) attempt.again(*waiter.reply);
        s = ask(waiter, deadline);
    } while (s == DTRAIN_OK && waiter.reply->again);
    // By then the caller knows which members were lost before the answer.
    std::lock_guard told(delivery_);
    if (s != DTRAIN_OK) return s;
    attempt.keep();
    result = {std::move(waiter.reply->members), waiter.reply->new_group, waiter.reply->tag_id};
    return DTRAIN_OK;
}

Status Job::State::enlist(Waiter &waiter) {
    std::lock_guard lock(mutex_);
    if (is_being_made(waiter.attempt.request()))
        return fail(DTRAIN_ERR_BUSY,
                    "%s: another thread of this process makes the same group; give each group its "
                    "own tag",
                    group_call(waiter.attempt.request().kind));
    waiters_.push_back(&waiter);
    return DTRAIN_OK;
}

void Job::State::strike(Waiter &waiter) {
    std::lock_guard lock(mutex_);
    std::erase(waiters_, &waiter);
    driver_.withdraw(waiter.serial);
}

bool Job::State::is_being_made(const wire::GroupRequest &request) const {
    return std::ranges::any_of(waiters_, [&](const Waiter *waiter) {
        const wire::GroupRequest &other = waiter->attempt.request();
        return other.kind == request.kind && other.group == request.group &&
               other.user_tag == request.user_tag && other.members == request.members;
    });
}

// Sends the request, and waits for the reply.
Status Job::State::ask(Waiter &waiter, int64_t deadline) {
    const int64_t timeout = deadline == INT64_MAX ? INT64_MAX : deadline - now_ns();
    wire::GroupRequest request = waiter.attempt.request();
    const char *call = group_call(request.kind);
    if (timeout <= 0)
        return fail(DTRAIN_ERR_TIMEOUT,
                    "%s: the members found no tag that all of them could take in time", call);
    // The coordinator gives up earlier, so that its answer, with the better text, arrives by then.
    request.timeout_ns = timeout - timeout / 8;
    {
        std::lock_guard lock(mutex_);
        waiter.reply.reset();
        eventfd_t ignored;
        eventfd_read(waiter.wake.get(), &ignored);
        if (status_ != DTRAIN_OK) return fail(status_, "%s", text_.c_str());
        const int64_t before = driver_.next_deadline();
        if (Status s = driver_.ask(std::move(request), waiter.serial, now_ns()); s != DTRAIN_OK)
            return s;
        // A coordinator in this process may have answered others already.
        if (driver_.has_reports() || driver_.next_deadline() < before) driver_.wake();
    }
    for (;;) {
        work();
        std::unique_lock lock(mutex_);
        Status s = outcome(waiter);
        if (s == DTRAIN_IN_PROGRESS && now_ns() >= deadline)
            s = fail(
                DTRAIN_ERR_TIMEOUT,
                "%s: no answer from a coordinator within %lld ms; the timeout should be longer "
                "than three times heartbeat.timeout",
                call, static_cast<long long>(timeout / ms));
        if (s != DTRAIN_IN_PROGRESS) return s;
        const int64_t until = std::min(deadline, driver_.next_deadline());
        lock.unlock();
        wait(until, waiter.wake.get());
    }
}

Status Job::State::outcome(const Waiter &waiter) const {
    if (!waiter.reply)
        return status_ == DTRAIN_OK ? DTRAIN_IN_PROGRESS : fail(status_, "%s", text_.c_str());
    if (waiter.reply->status != DTRAIN_OK)
        return fail(waiter.reply->status, "%s", waiter.reply->text.c_str());
    if (!waiter.reply->again && !waiter.attempt.fits(*waiter.reply))
        return fail(DTRAIN_ERR_CORRUPT, "%s: the coordinator's reply is not one to this request",
                    group_call(waiter.attempt.request().kind));
    return DTRAIN_OK;
}

} // namespace dtrain::cluster
