// How the agent runs a collective in shared memory.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/window/window_operation.h"

#include <cstdio>
#include <string>

namespace dtrain::collectives {
namespace {

// Returns the call with copies of its arrays in `arrays`, which must outlive it.
WindowCall with_own(WindowCall call, std::vector<uint64_t> &arrays) {
    std::span<const uint64_t> *const spans[] = {&call.spec.counts, &call.spec.displs};
    arrays.reserve(call.spec.counts.size() + call.spec.displs.size()); // so that no array moves
    for (std::span<const uint64_t> *span : spans) {
        size_t first = arrays.size();
        arrays.insert(arrays.end(), span->begin(), span->end());
        *span = {arrays.data() + first, span->size()};
    }
    return call;
}

} // namespace

WindowOperation::WindowOperation(engine::Request *completed, const WindowCall &call,
                                 engine::OperationListener &listener, bool on_stack)
    : Operation(completed, on_stack),
      call_(on_stack || call.spec.counts.empty() ? call : with_own(call, kept_)),
      rank_(uint32_t(call.spec.rank)), ranks_(uint32_t(call.spec.size)), listener_(listener) {
    polled = true;
}

WindowOperation::Step WindowOperation::step() {
    if (call_.window->turn.load(std::memory_order_acquire) != call_.number - 1) return Step::idle;
    Step s = move();
    if (s == Step::done) call_.window->turn.store(call_.number, std::memory_order_release);
    return s;
}

void WindowOperation::start(engine::Agent &agent) {
    posted_ = true;
    if (listener_.operation_started(*this)) agent.wake(this);
}

int WindowOperation::advance(engine::Agent &agent) {
    if (failure_ != nullptr) {
        if (!is_left_alone() && agent.now() < failure_->patience_ns) return 0;
        const std::unique_ptr<Failure> failure = std::move(failure_); // finish() ends this
        end_failed(agent, failure->outcome, failure->text.c_str());
        return 1;
    }
    if (!agent.passes_gate(this)) return 0;
    Step s = step();
    if (s == Step::idle) return 0;
    // Neither is progress: the operation goes on to stall, which is reported again and again. The
    // first report may be left out, if another was sent just before.
    const bool moved = s != Step::mismatch && s != Step::broken;
    if (moved) moved_ns = agent.now();
    if (s == Step::done) {
        listener_.operation_ended(*this);
        agent.finish(this, {.bytes = call_.result_bytes}, "");
    } else if (s == Step::mismatch && !reported_) {
        reported_ = true; // comparing the calls finds the difference
        listener_.operation_stalled(*this);
    }
    if (s == Step::broken && !reported_) {
        reported_ = true;
        char text[error_text_size]; // a copy, because the listener's work may replace it
        std::snprintf(text, sizeof text, "rank %d: %s", broken_.peer, error_text());
        listener_.operation_failed(*this, broken_, text);
    }
    return moved ? 1 : 0;
}

// Its turn never ends, so no later operation on this window can run. The other ranks learn of it
// before the caller uses its buffers for anything else.
void WindowOperation::fail(engine::Agent &agent, const engine::Outcome &outcome, const char *text) {
    if (failure_ != nullptr) return;
    std::atomic<uint64_t> &first = call_.window->flags(rank_).given_up.value;
    if (const uint64_t number = first.load(); number == 0 || call_.number < number)
        first.store(call_.number);
    __sync_synchronize(); // the caller may use its buffers after this
    if (is_left_alone()) return end_failed(agent, outcome, text);
    failure_ = std::make_unique<Failure>(
        Failure{outcome, text, agent.now() + tp::Parts::writing_limit_ns});
}

void WindowOperation::end_failed(engine::Agent &agent, const engine::Outcome &outcome,
                                 const char *text) {
    listener_.operation_ended(*this);
    agent.finish(this, outcome, text);
}

void WindowOperation::unable(engine::Agent &, Status status, const char *text) {
    char full[error_text_size];
    std::snprintf(full, sizeof full, "rank %u: %s", rank_, text);
    listener_.operation_failed(*this, {.status = status}, full);
}

void WindowOperation::stalled(engine::Agent &) { listener_.operation_stalled(*this); }

bool WindowOperation::waits_for(uint32_t rank) const {
    return call_.window->turn.load(std::memory_order_acquire) == call_.number - 1 && lacks(rank);
}

void WindowOperation::timed_out(engine::Agent &) {
    constexpr int most = 4;
    std::string text = "timed out";
    int named = 0;
    for (uint32_t rank = 0; rank < ranks_ && named <= most; rank++) {
        if (rank == rank_ || !waits_for(rank)) continue;
        if (named == most)
            text += " and others";
        else
            text += (named == 0 ? "; it waits for rank " : ", ") + std::to_string(rank);
        named++;
    }
    if (const char *part = slow_part(); part != nullptr && named == 0)
        text += std::string("; ") + part + " has not finished yet";
    listener_.operation_failed(*this, {.status = DTRAIN_ERR_TIMEOUT}, text.c_str());
}

void WindowOperation::describe(trace::Record &record) const {
    record.name = kind_name(call_.spec.kind);
    record.way = way();
    record.bytes = typical_bytes(call_.spec);
    record.group = call_.group;
    record.dtype = uint8_t(call_.dtype);
}

} // namespace dtrain::collectives
