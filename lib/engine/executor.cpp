// Issues the steps of a schedule as soon as the steps before them are done.
// SPDX-License-Identifier: Apache-2.0
#include "engine/executor.h"

#include "engine/tag.h"

#include <algorithm>
#include <functional>
#include <new>
#include <set>
#include <utility>

namespace dtrain::engine {

namespace {

constexpr uint64_t striped_bytes = 32 << 10; // messages of this size or more use the rails in turn

bool is_message(StepKind kind) {
    return kind == StepKind::send || kind == StepKind::recv || kind == StepKind::recv_reduce;
}

// Index into RunMemory::held and ScheduleRun::moving_: whether a message is received.
bool is_inward(const Step &step) { return step.kind != StepKind::send; }

// Heaps of steps: lowest index first.
void push(std::vector<uint32_t> &heap, uint32_t i) {
    heap.push_back(i);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

uint32_t pop(std::vector<uint32_t> &heap) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    uint32_t i = heap.back();
    heap.pop_back();
    return i;
}

} // namespace

ScheduleRun::ScheduleRun(Request *completed, RunParams params, bool on_stack)
    : Operation(completed, on_stack), params_(std::move(params)) {
    text_[0] = '\0';
}

ScheduleRun::~ScheduleRun() {
    RunMemory *none = nullptr;
    if (memory_ != nullptr && params_.plan->spare.compare_exchange_strong(none, memory_.get()))
        (void)memory_.release();
}

void ScheduleRun::start(Agent &agent) {
    agent_ = &agent;
    memory_.reset(params_.plan->spare.exchange(nullptr));
    if (memory_ == nullptr) memory_ = std::make_unique<RunMemory>();
    memory_->steps.clear();
    memory_->ready.clear();
    for (std::vector<uint32_t> &held : memory_->held) held.clear();
    agent.precedence().begin(priority);
    if (!params_.listener->operation_started(*this)) return;
    const Schedule &schedule = params_.plan->schedule;
    left_ = uint32_t(schedule.steps.size());
    memory_->steps.resize(left_);
    // Reserves room for the steps that completions add later.
    for (std::vector<uint32_t> *heap : {&memory_->ready, &memory_->held[0], &memory_->held[1]})
        heap->reserve(left_);
    if (schedule.scratch_bytes > 0 && memory_->scratch == nullptr) {
        memory_->scratch.reset(new (std::nothrow) uint8_t[schedule.scratch_bytes]);
        if (memory_->scratch == nullptr) {
            char text[96];
            std::snprintf(text, sizeof text, "no memory for %llu bytes of scratch memory",
                          static_cast<unsigned long long>(schedule.scratch_bytes));
            return broken(DTRAIN_ERR_NO_MEMORY, -1, text);
        }
    }
    for (uint32_t i = 0; i < left_; i++) {
        memory_->steps[i].done = &step_event;
        memory_->steps[i].run = this;
        memory_->steps[i].waits_for = schedule.steps[i].deps_count;
        if (memory_->steps[i].waits_for == 0)
            memory_->ready.push_back(i); // ascending, so it is already a min-heap
    }
    agent.wake(this);
}

int ScheduleRun::advance(Agent &agent) {
    if (outcome_.status == DTRAIN_OK && !agent.passes_gate(this)) return 0;
    int done = 0;
    std::vector<uint32_t> &later = memory_->later;
    later.clear();
    for (uint32_t i = 0; outcome_.status == DTRAIN_OK && next(i);) {
        if (issue(i))
            done++;
        else
            later.push_back(i);
    }
    for (uint32_t i : later) push(memory_->ready, i);
    // If steps are held back by the transport or for lack of staging memory, try again.
    agent_->set_polled(this, !memory_->ready.empty());
    if (done > 0) moved_ns = agent_->now();
    end_if_idle();
    return done;
}

// Finds the step to issue now; false: none.
bool ScheduleRun::next(uint32_t &i) {
    for (std::vector<uint32_t> &held : memory_->held) {
        if (held.empty() || must_hold(held.front())) continue;
        i = pop(held);
        return true;
    }
    if (memory_->ready.empty()) return false;
    i = pop(memory_->ready);
    return true;
}

// The first send and the first receive are never held back, so no rank waits forever, whatever the
// bounds: every schedule could even run with one send and one receive at a time, in the order of
// its steps (collectives::check() proves it).
bool ScheduleRun::is_first(uint32_t i) const {
    const std::vector<Step> &steps = params_.plan->schedule.steps;
    for (uint32_t k = first_open_; k < i; k++)
        if (memory_->steps[k].pending && is_inward(steps[k]) == is_inward(steps[i])) return false;
    return true;
}

bool ScheduleRun::must_hold(uint32_t i) const {
    if (!agent_->precedence().used()) [[likely]]
        return false;
    const Step &step = params_.plan->schedule.steps[i];
    const uint64_t bound = agent_->precedence().bound(priority), moving = moving_[is_inward(step)];
    bool fits = moving <= bound && step.bytes <= bound - moving;
    return !fits && !is_first(i);
}

bool ScheduleRun::issue(uint32_t i) {
    const Step &step = params_.plan->schedule.steps[i];
    if (is_message(step.kind) && must_hold(i)) [[unlikely]] {
        push(memory_->held[is_inward(step)], i);
        return true;
    }
    Status s = DTRAIN_OK;
    trace_begin(memory_->steps[i]);
    switch (step.kind) {
    case StepKind::send: s = post_send(i); break;
    case StepKind::recv: s = post_recv(i, place(step.dst)); break;
    case StepKind::recv_reduce: {
        void *buffer = params_.staging->take(step.bytes, false);
        if (buffer == nullptr && staged_ != 0 && !is_first(i)) return false;
        if (buffer == nullptr) buffer = params_.staging->take(step.bytes, true);
        if (buffer == nullptr) {
            broken(DTRAIN_ERR_NO_MEMORY, -1, "no memory for a receive buffer");
            return true;
        }
        s = post_recv(i, buffer);
        if (s == DTRAIN_OK) {
            memory_->steps[i].staging = buffer;
            staged_++;
        } else {
            params_.staging->give_back(buffer);
        }
        break;
    }
    case StepKind::copy:
    case StepKind::reduce:
    case StepKind::scale:
    case StepKind::dots:
    case StepKind::add_sums:
    case StepKind::blend:
    case StepKind::weigh:
    case StepKind::hash:
    case StepKind::compare:
        work_locally(i);
        step_done(i);
        return true;
    }
    // An attempt to connect that fails is repeated until the listener ends the operation.
    if (s == DTRAIN_ERR_BUSY || connection_lost(s)) return false;
    if (s == DTRAIN_OK) {
        memory_->steps[i].pending = true;
        pending_++;
        moving_[is_inward(step)] += step.bytes;
    } else {
        broken(s, step.peer, error_text());
    }
    return true;
}

Status ScheduleRun::post_send(uint32_t i) {
    const Step &step = params_.plan->schedule.steps[i];
    dtrain_tp_iov_t iov = {.addr = place(step.src), .len = step.bytes, .mr = nullptr};
    uint64_t tag =
        make_tag(params_.group, params_.rank, TagClass::collective, params_.bits | step.message);
    return params_.mesh->send(member(step), tag, &iov, 1, &memory_->steps[i], rail(step));
}

Status ScheduleRun::post_recv(uint32_t i, void *into) {
    const Step &step = params_.plan->schedule.steps[i];
    dtrain_tp_iov_t iov = {.addr = into, .len = step.bytes, .mr = nullptr};
    uint64_t tag = make_tag(params_.group, uint32_t(step.peer), TagClass::collective,
                            params_.bits | step.message);
    return params_.mesh->recv(member(step), tag, exact, &iov, 1, &memory_->steps[i], rail(step));
}

// Large transfers are many messages of one chunk each; both sides know their numbers and sizes.
uint32_t ScheduleRun::rail(const Step &step) const {
    if (step.bytes < striped_bytes) return 0;
    uint32_t rails = params_.mesh->rails(member(step));
    return rails == 1 ? 0 : step.message % rails;
}

void ScheduleRun::step_done(uint32_t i) {
    left_--;
    memory_->steps[i].is_done = true;
    while (first_open_ < memory_->steps.size() && memory_->steps[first_open_].is_done)
        first_open_++;
    trace_end(memory_->steps[i], params_.plan->schedule.steps[i].kind);
    const Plan &plan = *params_.plan;
    for (uint32_t k = plan.first_successor[i]; k < plan.first_successor[i + 1]; k++)
        if (--memory_->steps[plan.successors[k]].waits_for == 0)
            push(memory_->ready, plan.successors[k]);
}

void ScheduleRun::step_event(Completion *self, const dtrain_tp_done_t &event) {
    StepRun &step_run = *static_cast<StepRun *>(self);
    ScheduleRun &run = *step_run.run;
    uint32_t i = run.index(step_run);
    const Step &step = run.params_.plan->schedule.steps[i];
    step_run.pending = false;
    run.pending_--;
    run.moving_[is_inward(step)] -= step.bytes;
    bool good = run.outcome_.status == DTRAIN_OK;
    if (good && connection_lost(event.status)) {
        step_run.lost = true; // the run stalls until the listener knows which process is at fault
    } else if (good && event.status == DTRAIN_ERR_CORRUPT) {
        const uint32_t from = run.member(step);
        run.broken(event.status, step.peer,
                   run.params_.mesh->violation(from, run.rail(step)).c_str());
    } else if (good && event.status != DTRAIN_OK && event.status != DTRAIN_ERR_TRUNCATED) {
        run.broken(event.status, step.peer,
                   step.kind == StepKind::send ? "sending failed" : "receiving failed");
    } else if (good && step.kind != StepKind::send && event.bytes != step.bytes) {
        char text[96];
        std::snprintf(text, sizeof text,
                      "a message of %llu bytes arrived where %llu bytes were "
                      "expected",
                      static_cast<unsigned long long>(event.bytes),
                      static_cast<unsigned long long>(step.bytes));
        run.broken(DTRAIN_ERR_MISMATCH, step.peer, text);
    } else if (good) {
        if (step.kind == StepKind::recv_reduce) {
            run.trace_end(step_run, StepKind::recv);
            run.trace_begin(step_run);
            run.work_locally(i);
        }
        run.step_done(i);
    }
    if (step_run.staging != nullptr) {
        run.params_.staging->give_back(step_run.staging);
        step_run.staging = nullptr;
        run.staged_--;
    }
    run.moved_ns = run.agent_->now();
    if (run.can_advance()) run.agent_->wake(&run);
}

// Most completions of sends make no further step ready.
bool ScheduleRun::can_advance() const {
    return left_ == 0 || outcome_.status != DTRAIN_OK || !memory_->ready.empty() ||
           !memory_->held[0].empty() || !memory_->held[1].empty();
}

void ScheduleRun::broken(Status status, int32_t peer_rank, const char *what) {
    char text[error_text_size];
    if (peer_rank >= 0)
        std::snprintf(text, sizeof text, "rank %d: %s", peer_rank, what);
    else
        std::snprintf(text, sizeof text, "%s", what);
    Outcome outcome = {.status = status, .peer = peer_rank};
    params_.listener->operation_failed(*this, outcome, text);
    if (outcome_.status == DTRAIN_OK) fail(*agent_, outcome, text);
}

void ScheduleRun::fail(Agent &agent, const Outcome &outcome, const char *text) {
    if (outcome_.status != DTRAIN_OK) return;
    outcome_ = outcome;
    std::snprintf(text_, sizeof text_, "%s", text);
    for (StepRun &run : memory_->steps) {
        if (!run.pending) continue;
        const Step &step = params_.plan->schedule.steps[index(run)];
        params_.mesh->withdraw(member(step), &run, rail(step));
    }
    agent.wake(this); // ends in advance(), since the caller may still be inside this run
}

void ScheduleRun::unable(Agent &, Status status, const char *text) {
    char full[error_text_size];
    std::snprintf(full, sizeof full, "rank %u: %s", params_.rank, text);
    broken(status, -1, full);
}

void ScheduleRun::stalled(Agent &) {
    if (outcome_.status == DTRAIN_OK) params_.listener->operation_stalled(*this);
}

bool ScheduleRun::waits_for(uint32_t rank) const {
    auto concerns = [&](uint32_t i) {
        return params_.plan->schedule.steps[i].peer == int32_t(rank);
    };
    for (const StepRun &step : memory_->steps)
        if ((step.pending || step.lost) && concerns(index(step))) return true;
    for (const std::vector<uint32_t> &held : memory_->held)
        if (std::any_of(held.begin(), held.end(), concerns)) return true;
    return std::any_of(memory_->ready.begin(), memory_->ready.end(), concerns);
}

// Names up to `most` of the routes over which data is missing.
std::string ScheduleRun::missing() const {
    constexpr size_t most = 2;
    std::set<std::pair<int32_t, uint32_t>> ways; // rank and rail
    for (const StepRun &run : memory_->steps) {
        const Step &step = params_.plan->schedule.steps[index(run)];
        if (run.pending && ways.size() < most) ways.insert({step.peer, rail(step)});
    }
    std::string text;
    for (auto [rank, rail] : ways)
        text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank) + " over " +
                params_.mesh->way(params_.members[uint32_t(rank)], rail);
    return text;
}

void ScheduleRun::timed_out(Agent &) {
    std::string text = "timed out";
    for (uint32_t i : memory_->ready) {
        int32_t peer = params_.plan->schedule.steps[i].peer;
        std::string trouble =
            peer < 0 ? "" : params_.mesh->trouble(params_.members[uint32_t(peer)]);
        if (!trouble.empty()) text += "; rank " + std::to_string(peer) + ": " + trouble;
        if (!trouble.empty()) break;
    }
    const std::string awaited = missing();
    if (!awaited.empty()) text += "; it waits for " + awaited;
    broken(DTRAIN_ERR_TIMEOUT, -1, text.c_str());
}

void ScheduleRun::end_if_idle() {
    bool ended = outcome_.status == DTRAIN_OK ? left_ == 0 : pending_ == 0;
    if (!ended) return;
    if (outcome_.status == DTRAIN_OK) outcome_.bytes = params_.result_bytes;
    agent_->precedence().end(priority);
    params_.listener->operation_ended(*this);
    agent_->finish(this, outcome_, text_);
}

} // namespace dtrain::engine
