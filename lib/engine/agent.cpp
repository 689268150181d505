// The rounds of the agent: starts, advances, polls and finishes operations.
// SPDX-License-Identifier: Apache-2.0
#include "engine/agent.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace dtrain::engine {
namespace {

constexpr uint32_t completions_per_poll = 64;
constexpr uint32_t rounds_per_clock = 64;  // reading the clock costs as much as a poll
constexpr int64_t check_interval = 2 * ms; // deadlines and stalls
// For a device that cannot wake a sleeping thread: such a sleep lasts its full time even if a
// message arrives a moment later, so sleeps have to be rare.
constexpr int64_t blind_sleep = 100'000, blind_patience = 10;

} // namespace

Agent::Agent(Clock &clock, Log &log) : clock_(clock), log_(log), timeline_(log) {
    set_policy(WaitPolicy{});
    now_ns_ = clock.now_ns();
}

Status Agent::open() {
    epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
    wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!epoll_ || !wake_) return fail_errno(errno, "context: epoll and eventfd");
    epoll_event event = {.events = EPOLLIN, .data = {.fd = wake_.get()}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0)
        return fail_errno(errno, "context: epoll_ctl");
    return DTRAIN_OK;
}

Status Agent::add_device(std::unique_ptr<transport::Device> device) {
    if (device->has(DTRAIN_TP_CAP_EVENT_FD)) {
        epoll_event event = {.events = EPOLLIN, .data = {}};
        if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, device->ops().event_fd(device->dev()), &event) !=
            0)
            return fail_errno(errno, "transport %s: epoll_ctl",
                              std::string(device->name()).c_str());
    } else {
        blind_ = true;
        patience_ = blind_patience;
    }
    devices_.push_back(std::move(device));
    return DTRAIN_OK;
}

void Agent::set_policy(const WaitPolicy &policy) {
    spin_ns_ = policy.spin_ns;
    yield_ns_ = policy.yield_ns;
    sleep_ns_ = policy.sleep_ns;
}

WaitPolicy Agent::policy() const {
    return {.spin_ns = spin_ns_, .yield_ns = yield_ns_, .sleep_ns = sleep_ns_};
}

int64_t Agent::longest_sleep() const { return blind_ ? blind_sleep : sleep_ns_.load(); }

int Agent::work() {
    int done = 0;
    int64_t now = 0;
    {
        const auto lock = try_lock();
        if (!lock.owns_lock()) return 0;
        done = round();
        now = now_ns_;
    }
    settle();
    if (helper_.serve != nullptr) [[unlikely]]
        serve_when_due(now);
    return done;
}

int Agent::round() {
    const uint32_t rounds = rounds_.load(std::memory_order_relaxed);
    rounds_.store(rounds + 1, std::memory_order_relaxed);
    if (rounds % rounds_per_clock == 0) {
        now_ns_ = clock_.now_ns();
        if (now_ns_ - checked_ns_ >= check_interval) check_time();
    }
    take_posted();
    int done = poll_devices();
    done += advance_polled();
    return done + advance_woken();
}

int Agent::advance_polled() {
    if (precedence_.used()) [[unlikely]]
        return advance_polled_by_priority();
    int done = 0;
    for_each(polled_, [&](Operation *operation) {
        guarded(*this, operation, [&](Operation *it) { done += it->advance(*this); });
    });
    return done;
}

void Agent::set_polled(Operation *operation, bool polled) {
    if (operation->polled == polled) return;
    operation->polled = polled;
    if (polled)
        polled_.push_back(operation);
    else
        std::erase(polled_, operation);
}

// While an operation can move, those of lower priority wait; they get the rounds in which it has to
// wait itself.
int Agent::advance_polled_by_priority() {
    int done = 0;
    for (int64_t above = INT64_MAX; done == 0;) {
        int64_t level = INT64_MIN;
        for (const Operation *operation : polled_)
            if (operation->priority < above) level = std::max<int64_t>(level, operation->priority);
        if (level == INT64_MIN) break;
        for_each(polled_, [&](Operation *operation) {
            if (operation->priority != level) return;
            guarded(*this, operation, [&](Operation *it) { done += it->advance(*this); });
        });
        above = level;
    }
    return done;
}

void Agent::take_posted() {
    // This check need not be exact: a thread that posts or unlocks checks again.
    if (inbox_.load(std::memory_order_relaxed) == nullptr) return;
    Posted *newest = inbox_.exchange(nullptr, std::memory_order_seq_cst);
    now_ns_ = clock_.now_ns(); // the last round may be long ago
    Posted *oldest = nullptr;
    while (newest != nullptr) {
        Posted *next = newest->next_posted_;
        newest->next_posted_ = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest != nullptr) {
        Posted *posted = oldest;
        oldest = oldest->next_posted_;
        posted->take(*this);
    }
}

void Agent::set_deadline(Operation *operation) const {
    if (operation->time_limit_ns >= 0 && operation->time_limit_ns < INT64_MAX - now_ns_)
        operation->deadline_ns = now_ns_ + operation->time_limit_ns;
}

bool Agent::look_at_gate(Operation *operation) {
    const Status s = operation->gate->look();
    operation->moved_ns = now_ns_;
    if (s == DTRAIN_IN_PROGRESS) {
        operation->deadline_ns = INT64_MAX;
        set_polled(operation, true);
        return false;
    }
    operation->gate = nullptr;
    set_deadline(operation);
    if (s == DTRAIN_OK) return true;
    char text[error_text_size]; // a copy, because the owner's work may replace it
    std::snprintf(text, sizeof text, "%s", error_text());
    operation->unable(*this, s, text);
    return false;
}

void Agent::begin(Operation *operation) {
    operation->index_ = uint32_t(active_.size());
    operation->moved_ns = now_ns_;
    set_deadline(operation);
    active_.push_back(operation);
    if (operation->polled) polled_.push_back(operation);
    if (operation->priority != 0) [[unlikely]]
        precedence_.use();
    guarded(*this, operation, [this](Operation *it) { it->start(*this); });
}

void Agent::out_of_memory(Operation *operation) {
    constexpr const char *text = "out of memory";
    log_.write(DTRAIN_LOG_ERROR, "%s: the operations in progress fail", text);
    const auto end = [this](Operation *it) { it->unable(*this, DTRAIN_ERR_NO_MEMORY, text); };
    if (operation != nullptr)
        end(operation);
    else
        for_each_active(end);
}

int Agent::poll_devices() {
    int total = 0;
    for (auto &device : devices_) total += poll(*device);
    return total;
}

int Agent::poll(transport::Device &device) {
    dtrain_tp_done_t events[completions_per_poll];
    int32_t n = device.ops().progress(device.dev(), events, completions_per_poll);
    for (int32_t i = 0; i < n; i++) {
        auto *completion = reinterpret_cast<Completion *>(events[i].cookie);
        try {
            completion->done(completion, events[i]);
        } catch (const std::bad_alloc &) {
            out_of_memory(nullptr);
        }
    }
    if (n > 0) return n;
    return device.has_moved() ? 1 : 0; // a part of a large message
}

void Agent::wake(Operation *operation) {
    if (operation->woken_) return;
    operation->woken_ = true;
    woken_.push_back(operation);
}

int Agent::advance_woken() {
    int done = 0;
    // In this order, so that messages keep the order of their calls.
    for (size_t i = 0; i < woken_.size(); i++) {
        Operation *operation = std::exchange(woken_[i], nullptr);
        operation->woken_ = false;
        operation->moved_ns = now_ns_;
        done++;
        guarded(*this, operation, [&](Operation *it) { done += it->advance(*this); });
    }
    woken_.clear();
    return done;
}

void Agent::attend_for(int64_t ns) {
    const int64_t until = clock_.now_ns() + ns;
    if (std::exchange(attends_until_ns_, std::max(attends_until_ns_, until)) == 0) attend();
}

void Agent::check_time() {
    checked_ns_ = now_ns_;
    if (attends_until_ns_ != 0 && now_ns_ >= attends_until_ns_) {
        attends_until_ns_ = 0;
        end_attendance();
    }
    for_each_active([&](Operation *operation) {
        const bool is_due = operation->due_ns != nullptr && now_ns_ >= *operation->due_ns &&
                            now_ns_ - operation->moved_ns >= Operation::due_stall;
        if (now_ns_ >= operation->deadline_ns || is_due) {
            operation->due_ns = nullptr;
            operation->deadline_ns = INT64_MAX;
            guarded(*this, operation, [this](Operation *it) { it->timed_out(*this); });
        } else if (now_ns_ - operation->moved_ns >= stall_after_ns_) {
            bool again = operation->stalled_since_ns_ == operation->moved_ns;
            operation->stalls = again ? operation->stalls + 1 : 1;
            operation->stalled_since_ns_ = operation->moved_ns;
            guarded(*this, operation, [this](Operation *it) { it->stalled(*this); });
        }
    });
}

int64_t Agent::stuck_for() {
    int64_t moved_ns = 0;
    for_each_active(
        [&](const Operation *operation) { moved_ns = std::max(moved_ns, operation->moved_ns); });
    return now_ns_ - moved_ns;
}

void Agent::record(const Operation &operation, const Outcome &outcome) {
    if (!timeline_.on()) return;
    trace::Record record = {.begin_ns = operation.begun_ns,
                            .end_ns = clock_.now_ns(),
                            .call = operation.sequence,
                            .peer = outcome.peer,
                            .status = outcome.status};
    operation.describe(record);
    if (*record.name != 0) timeline_.record(record);
}

void Agent::finish(Operation *operation, const Outcome &outcome, const char *text) {
    if (operation->begun_ns != 0) record(*operation, outcome);
    active_[operation->index_] = active_.back();
    active_[operation->index_]->index_ = operation->index_;
    active_.pop_back();
    if (operation->woken_) std::erase(woken_, operation);
    set_polled(operation, false);
    if (!operation->resting) pending_.fetch_sub(1, std::memory_order_acq_rel);
    Request *request = operation->request;
    Outcome final = outcome; // a copy: `outcome` and `text` may be members of the operation
    if (outcome.status < 0) request->set_error(text);
    operation->dispose();
    complete(*request, final);
}

void Agent::rest(Operation *operation, bool resting) {
    if (operation->resting == resting) return;
    operation->resting = resting;
    if (resting)
        pending_.fetch_sub(1, std::memory_order_acq_rel);
    else
        pending_.fetch_add(1, std::memory_order_acq_rel);
}

void Agent::complete(Request &request, const Outcome &outcome) {
    request.complete(outcome);
    // The owner may be the thread that sleeps on the devices while another one works.
    if (sleepers_.load(std::memory_order_seq_cst) != 0) wake_sleeper();
}

} // namespace dtrain::engine
