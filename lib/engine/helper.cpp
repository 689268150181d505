// The loop of the helper thread: polls and rests.
// SPDX-License-Identifier: Apache-2.0
#include "engine/helper.h"

#include "base/thread.h"

#include <algorithm>
#include <cerrno>
#include <sys/eventfd.h>

namespace dtrain::engine {
namespace {

constexpr int64_t longest_rest = 1 * second;
constexpr int64_t helper_spin = 20 * us; // it shares the cores with the program's work
// A program that waits within this time after posting does not need the helper.
constexpr int64_t soon = 50 * us;
// The helper then stays away for a while, so that the next posts do not pay for waking it; the
// longer, the more often in a row this happens.
constexpr int64_t shortest_doze = 200 * us, longest_doze = 2 * ms;

} // namespace

Status Helper::start(bool always_poll) {
    always_poll_ = always_poll;
    wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_) return fail_errno(errno, "helper thread: eventfd");
    agent_.set_helper(
        {.wake = [](void *self) { static_cast<Helper *>(self)->wake(); }, .arg = this});
    return start_thread(thread_, "dtrain", [this] { run(); });
}

Helper::~Helper() {
    stop_ = true;
    if (thread_.joinable()) {
        eventfd_write(wake_.get(), 1);
        thread_.join();
    }
}

void Helper::wake() {
    if (parked_.load(std::memory_order_seq_cst)) eventfd_write(wake_.get(), 1);
}

void Helper::run() {
    bool called = false;
    while (!stop_) {
        const bool needed = nobody_polls() ? poll_agent() : !called;
        doze_ns_ = needed ? 0 : std::clamp(2 * doze_ns_, shortest_doze, longest_doze);
        called = rest(needed ? Rest::parked : Rest::dozing);
    }
}

bool Helper::nobody_polls() const {
    return agent_.pending() && (always_poll_ || !agent_.has_poller());
}

// Polls until nothing is pending, another thread waits, or there was nothing to do for a while.
// Returns false if the helper was not needed.
bool Helper::poll_agent() {
    WaitPolicy policy = agent_.policy();
    policy.spin_ns = std::min(policy.spin_ns, helper_spin);
    Idle idle(policy);
    const int64_t begin = agent_.clock().now_ns();
    while (nobody_polls() && !stop_) {
        if (agent_.work() > 0) {
            idle.reset();
        } else if (!agent_.pass(idle)) {
            rest(Rest::as_poller);
            Idle::slept();
            return true;
        }
    }
    return !agent_.has_poller() || agent_.clock().now_ns() - begin > soon;
}

// Returns whether it was woken. Once stopped it does not sleep: an earlier rest may have taken the
// wake-up of the destructor.
bool Helper::rest(Rest how) {
    const bool as_poller = how == Rest::as_poller, dozes = how == Rest::dozing;
    parked_.store(!dozes, std::memory_order_seq_cst);
    const int64_t longest = as_poller ? agent_.longest_sleep() : dozes ? doze_ns_ : longest_rest;
    const bool may_sleep = as_poller ? agent_.begin_sleep() : dozes || !nobody_polls();
    if (may_sleep && !stop_) {
        pollfd fds[2] = {{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                         {.fd = agent_.poll_fd(), .events = POLLIN, .revents = 0}};
        sleep_on({fds, as_poller ? 2u : 1u}, longest);
    }
    if (as_poller) agent_.end_sleep();
    parked_.store(false, std::memory_order_seq_cst);
    eventfd_t value;
    return eventfd_read(wake_.get(), &value) == 0;
}

} // namespace dtrain::engine
