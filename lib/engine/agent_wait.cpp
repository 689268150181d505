// How the agent takes posted operations, waits, and falls asleep.
// SPDX-License-Identifier: Apache-2.0
#include "engine/agent.h"
#include "engine/completion_queue.h"

#include <algorithm>
#include <ctime>
#include <sys/eventfd.h>

namespace dtrain::engine {
namespace {

constexpr int follower_spins = 64;
constexpr int64_t lock_nap = 50 * us;
constexpr int64_t serving_interval = 10 * ms;

} // namespace

// The thread that holds the lock starts the operation: every thread checks the inbox after
// unlocking (settle()).
void Agent::post_inside(Operation *operation) {
    if (timeline_.on() && operation->begun_ns == 0) operation->begun_ns = clock_.now_ns();
    pending_.fetch_add(1, std::memory_order_acq_rel);
    push(operation);
}

void Agent::push(Posted *posted) {
    Posted *head = inbox_.load(std::memory_order_relaxed);
    do posted->next_posted_ = head;
    while (!inbox_.compare_exchange_weak(head, posted, std::memory_order_seq_cst));
}

void Agent::hand_in(Posted *posted) {
    push(posted);
    settle();
}

void Agent::post(Operation *operation, bool with_waiter) {
    post_inside(operation);
    settle();
    if (!with_waiter && !has_poller()) call_helper();
}

void Agent::call_helper() {
    if (helper_.wake != nullptr) helper_.wake(helper_.arg);
}

// The thread that holds the lock may have checked the inbox before something was put there. So
// every thread that has unlocked or posted checks it again, and whichever gets the lock takes what
// all have posted, one that has claimed it included.
void Agent::settle() {
    while (inbox_.load(std::memory_order_seq_cst) != nullptr) {
        const auto lock = try_lock();
        if (!lock.owns_lock()) return;
        take_posted();
        advance_woken();
    }
}

template <class Waitable> void Agent::wait_for(Waitable &&waitable, int64_t deadline_ns) {
    bool poller = false;
    WaitPolicy policy = this->policy();
    policy.spin_ns *= patience_;
    policy.yield_ns *= patience_;
    Idle idle(policy);
    int spins = 0;
    while (!waitable.ready()) {
        poller = poller || become_poller();
        if (poller && work() > 0) {
            idle.reset();
            continue;
        }
        if (poller ? pass(idle) : spins++ < follower_spins) continue;
        // The last round may have taken an answer that completes nothing; nothing else would wake
        // this thread then.
        if (waitable.ready()) break;
        int64_t left = deadline_ns - clock_.now_ns();
        if (left <= 0) break;
        left = std::min(left, longest_sleep());
        if (!poller)
            waitable.sleep(left);
        else if (sleep(left))
            idle.reset(); // large data that a network library moves unseen: more is on its way
        Idle::slept();
    }
    if (poller) resign_poller();
}

void Agent::wait(Request &request, int64_t deadline_ns) {
    struct {
        Request &request;
        bool ready() { return request.done(); }
        void sleep(int64_t timeout_ns) { request.sleep(timeout_ns); }
    } waitable{request};
    wait_for(waitable, deadline_ns);
}

void Agent::wait(CompletionQueue &queue, int64_t deadline_ns) {
    struct {
        CompletionQueue &queue;
        bool ready() { return !queue.empty(); }
        void sleep(int64_t timeout_ns) {
            pollfd fd = {.fd = queue.fd(), .events = POLLIN, .revents = 0};
            sleep_on({&fd, 1}, timeout_ns);
        }
    } waitable{queue};
    wait_for(waitable, deadline_ns);
}

void Agent::wait_until(const std::function<bool()> &ready, int64_t deadline_ns) {
    struct {
        const std::function<bool()> &ready;
        void sleep(int64_t) { // another thread polls, and would not wake this one
            timespec t = {0, 1 * ms};
            nanosleep(&t, nullptr);
        }
    } waitable{ready};
    wait_for(waitable, deadline_ns);
}

void Agent::resign_poller() {
    has_poller_.store(false, std::memory_order_seq_cst);
    if (pending()) call_helper();
}

void Agent::wake_sleeper() { eventfd_write(wake_.get(), 1); }

bool Agent::arm_devices() {
    const auto lock = try_lock();
    if (!lock.owns_lock()) {
        // Its holder may have lost its processor, perhaps to this thread.
        const timespec t = {0, lock_nap};
        nanosleep(&t, nullptr);
        return false;
    }
    note_pause();
    for (auto &device : devices_)
        if (device->has(DTRAIN_TP_CAP_EVENT_FD) &&
            device->ops().arm(device->dev()) == DTRAIN_ERR_BUSY)
            return false;
    // Data in shared memory (windows) has no completion event: check once more.
    return advance_polled() == 0;
}

bool Agent::begin_sleep() {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    // A thread that posts while this thread holds the lock leaves the operation to this thread, so
    // the inbox is checked after unlocking.
    return arm_devices() && inbox_.load(std::memory_order_seq_cst) == nullptr;
}

bool Agent::end_sleep() {
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    eventfd_t value;
    return eventfd_read(wake_.get(), &value) == 0;
}

void Agent::stand_in(std::span<pollfd> fds, int64_t timeout_ns) {
    if (helper_.serve == nullptr) return (void)sleep_on(fds, timeout_ns);
    helper_.serve(helper_.arg);
    work();
    if (!become_poller()) return (void)sleep_on(fds, std::min(timeout_ns, longest_sleep()));
    pollfd all[3] = {{.fd = epoll_.get(), .events = POLLIN, .revents = 0}};
    const size_t count = std::min<size_t>(fds.size(), 2);
    std::copy_n(fds.begin(), count, all + 1);
    if (begin_sleep()) sleep_on({all, count + 1}, std::min(timeout_ns, longest_sleep()));
    end_sleep();
    resign_poller();
}

void Agent::serve_when_due(int64_t now) {
    if (now - served_ns_.load(std::memory_order_relaxed) < serving_interval) return;
    served_ns_.store(now, std::memory_order_relaxed);
    helper_.serve(helper_.arg);
}

bool Agent::sleep(int64_t timeout_ns) {
    if (helper_.serve != nullptr) helper_.serve(helper_.arg);
    bool event = true; // an event that kept the thread awake counts, too
    if (begin_sleep()) {
        pollfd fd = {.fd = epoll_.get(), .events = POLLIN, .revents = 0};
        event = sleep_on({&fd, 1}, timeout_ns);
    }
    return !end_sleep() && event;
}

} // namespace dtrain::engine
