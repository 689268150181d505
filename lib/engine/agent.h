// The progress agent of a context: any thread that needs progress runs it.
// SPDX-License-Identifier: Apache-2.0
//
// A thread that waits for an operation moves the data itself (no hop to another thread). At most
// one such thread at a time is the poller; the others sleep on their requests. A helper thread
// (helper.h) polls only while something is pending and no thread waits.
#pragma once
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/sleep.h"
#include "engine/idle.h"
#include "engine/job_slots.h"
#include "engine/operation.h"
#include "engine/posted.h"
#include "engine/precedence.h"
#include "trace/timeline.h"
#include "transport/device.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace dtrain::engine {

class Agent {
  public:
    Agent(Clock &clock, Log &log);
    Status open(); // opens its file descriptors
    // Must be called before anything is posted.
    Status add_device(std::unique_ptr<transport::Device> device);

    // ---- from any thread ----
    // As locked(), without waiting: if another thread is at work, it takes this soon, before
    // whatever is posted or locked later. For threads that others must not hold up.
    void hand_in(Posted *posted);
    // Starts the operation now or, if another thread is at work, soon. with_waiter: the caller will
    // call wait() at once, so no other thread has to be woken.
    void post(Operation *operation, bool with_waiter);
    // Returns when the request is done or deadline_ns (of the clock) has passed.
    void wait(Request &request, int64_t deadline_ns);
    // As wait(request), until the completion queue is not empty.
    void wait(CompletionQueue &queue, int64_t deadline_ns);
    // As wait(request), for a condition that no completion signals: ready() is called again
    // whenever something may have moved. It runs without the lock.
    void wait_until(const std::function<bool()> &ready, int64_t deadline_ns);
    // Completes a request that has no operation; threads may wait for it here, too.
    void complete(Request &request, const Outcome &outcome);
    // Does a bounded amount of work and returns how much, unless another thread is at work.
    // Operations for which memory is lacking fail with NO_MEMORY; nothing is thrown.
    int work();
    // Passes a little time; returns false when it is time to sleep.
    bool pass(Idle &idle) {
        const bool again = idle.pass();
        if (idle.yielded()) note_pause();
        return again;
    }
    // Runs f() under the lock: for events from outside (failures, control messages). Its turn comes
    // after the round in progress.
    template <class F> void locked(F &&f) {
        {
            const auto lock = claim();
            take_posted();
            f();
            advance_woken();
        }
        settle();
    }
    // For a blocking call that moves its data itself, without an operation: runs f() under the
    // lock. Returns false, without running f(), if an operation is pending or another thread is at
    // work.
    template <class F> bool alone(F &&f) {
        if (pending()) return false;
        bool is_alone = false;
        {
            const auto lock = try_lock();
            is_alone = lock.owns_lock() && !pending();
            if (is_alone) f();
        }
        settle();
        return is_alone;
    }
    bool pending() const { return pending_.load(std::memory_order_acquire) != 0; }
    bool has_poller() const { return has_poller_.load(std::memory_order_acquire); }
    // For the poller and the helper: if begin_sleep() returns true, they may sleep until poll_fd()
    // is readable. They call end_sleep() in either case; it tells whether one of the library's
    // threads has woken them.
    bool begin_sleep();
    bool end_sleep();
    int poll_fd() const { return epoll_.get(); }
    int wake_fd() const { return wake_.get(); } // an eventfd; writing to it ends such a sleep
    int64_t longest_sleep() const;
    bool become_poller() { return !has_poller_.exchange(true, std::memory_order_acq_rel); }
    void resign_poller();
    void call_helper(); // something is pending that this thread will not poll for
    // For a thread that waits for something else than the agent: sleeps until one of its
    // descriptors, of which there are two at most, is readable, for timeout_ns at most. Without a
    // helper (manual progress) it first does what the library's threads would do, and a device that
    // has work ends the sleep, too.
    void stand_in(std::span<pollfd> fds, int64_t timeout_ns);
    // For calls that may do without work(): without a helper, either serves the control plane now
    // and then, however busy the calls are.
    void serve_others() {
        if (helper_.serve != nullptr) [[unlikely]]
            serve_when_due(clock_.now_ns());
    }
    // Between these two calls the helper polls although nothing is pending: for a thread that waits
    // for others' decisions while peers may need answers of the devices.
    void attend() {
        pending_.fetch_add(1, std::memory_order_acq_rel);
        if (!has_poller()) call_helper();
    }
    void end_attendance() { pending_.fetch_sub(1, std::memory_order_acq_rel); }
    // The same for this time from now on, or as long as an earlier call has said. Under the lock.
    void attend_for(int64_t ns);
    void set_policy(const WaitPolicy &policy);
    WaitPolicy policy() const;

    // Callbacks to the helper, set before anything is posted. wake: work is pending and no thread
    // polls for it. serve (manual progress): the poller is about to sleep and there is no helper
    // thread, so the poller has to serve the control plane.
    struct Helper {
        void (*wake)(void *arg) = nullptr;
        void (*serve)(void *arg) = nullptr;
        void *arg = nullptr;
    };
    void set_helper(const Helper &helper) { helper_ = helper; }
    void set_stall_check(int64_t after_ns) { stall_after_ns_ = after_ns; }

    // ---- under the lock, for operations ----
    // As post(): the operation begins once the lock is free.
    void post_inside(Operation *operation);
    void wake(Operation *operation); // advance() it in this round
    void set_polled(Operation *operation, bool polled);
    void finish(Operation *operation, const Outcome &outcome, const char *text);
    // A resting operation stays active but has nothing to do at the moment: no thread has to poll
    // for it, though a thread that polls anyway advances it.
    void rest(Operation *operation, bool resting);
    // Whether the operation may use its buffers. While it may not, it is polled, and its time does
    // not count. If it never will, it is told that it is unable; it may then have ended.
    bool passes_gate(Operation *operation) {
        return operation->gate == nullptr || look_at_gate(operation);
    }
    int64_t now() const { return now_ns_; } // time of this round
    int poll(transport::Device &device);    // returns the amount of work done
    Precedence &precedence() { return precedence_; }
    // Calls f(operation) for each active operation; f may finish it.
    template <class F> void for_each_active(F &&f) { for_each(active_, f); }
    // For how long no operation has made progress, in ns.
    int64_t stuck_for();

    JobSlots &job_slots() { return job_slots_; }
    Clock &clock() { return clock_; }
    Log &log() { return log_; }
    trace::Timeline &timeline() { return timeline_; }
    // Writes an operation that has ended to the timeline, if it is on. Any thread.
    void record(const Operation &operation, const Outcome &outcome);
    const std::vector<std::unique_ptr<transport::Device>> &devices() const { return devices_; }

  private:
    friend class Operation; // begin()
    // A thread that does round after round has the lock nearly always, and a mutex does not hand it
    // over: another thread could wait for seconds on a busy machine, the one that sends heartbeats
    // among them. So threads that only try leave the lock to those who wait for it.
    std::unique_lock<std::mutex> claim() {
        claims_.fetch_add(1, std::memory_order_seq_cst);
        std::unique_lock lock(mutex_);
        claims_.fetch_sub(1, std::memory_order_seq_cst);
        return lock;
    }
    std::unique_lock<std::mutex> try_lock() {
        if (claims_.load(std::memory_order_seq_cst) != 0) return {};
        return std::unique_lock(mutex_, std::try_to_lock);
    }
    template <class Waitable> void wait_for(Waitable &&waitable, int64_t deadline_ns);
    int round();
    // The next round reads the clock. If another thread is at work, it may overlook this, but then
    // time has not stood still.
    void note_pause() { rounds_.store(0, std::memory_order_relaxed); }
    // f may shorten the list.
    template <class F> static void for_each(const std::vector<Operation *> &list, F &&f) {
        for (size_t i = list.size(); i-- > 0;)
            if (i < list.size()) f(list[i]);
    }
    void take_posted();
    int advance_woken();
    int advance_polled();
    int advance_polled_by_priority();
    int poll_devices();
    void check_time();
    void push(Posted *posted);
    void begin(Operation *operation);
    bool look_at_gate(Operation *operation);
    void set_deadline(Operation *operation) const;
    // Runs f(operation); the operation fails if memory is lacking for it.
    template <class F> static void guarded(Agent &agent, Operation *operation, F &&f) {
        try {
            f(operation);
        } catch (const std::bad_alloc &) {
            agent.out_of_memory(operation);
        }
    }
    void out_of_memory(Operation *operation); // nullptr: the operation is unknown
    void settle();
    bool arm_devices();
    bool sleep(int64_t timeout_ns); // true: a device ended the sleep
    void wake_sleeper();
    void serve_when_due(int64_t now);

    Clock &clock_;
    Log &log_;
    std::mutex mutex_;
    std::atomic<uint32_t> claims_{0}; // threads that wait for the lock
    std::vector<std::unique_ptr<transport::Device>> devices_;
    std::vector<Operation *> active_, polled_, woken_;
    int64_t now_ns_ = 0, checked_ns_ = 0;
    int64_t attends_until_ns_ = 0;    // 0: it does not
    std::atomic<uint32_t> rounds_{0}; // changed under the lock, but for note_pause()
    Precedence precedence_;
    std::atomic<Posted *> inbox_{nullptr};
    std::atomic<uint32_t> pending_{0};
    std::atomic<bool> has_poller_{false}; // the poller is a thread of the program
    std::atomic<uint32_t> sleepers_{0};   // the poller or the helper
    std::atomic<int64_t> spin_ns_;
    std::atomic<int64_t> yield_ns_;
    int64_t patience_ = 1; // factor on the times of the wait policy
    std::atomic<int64_t> sleep_ns_;
    bool blind_ = false; // some device cannot wake a sleeping thread
    Fd epoll_, wake_;
    Helper helper_;
    std::atomic<int64_t> served_ns_{0}; // when serve_when_due() has done it last
    JobSlots job_slots_;
    trace::Timeline timeline_;
    int64_t stall_after_ns_ = 20 * ms;
};

} // namespace dtrain::engine
