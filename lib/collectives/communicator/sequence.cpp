// How the agent runs a sequence of calls.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/sequence.h"

#include <algorithm>
#include <cstdio>

namespace dtrain::collectives {

void Sequence::start(engine::Agent &agent) {
    agent_ = &agent;
    if (comm_.faults().operation_started(*this)) agent.wake(this);
}

int Sequence::advance(engine::Agent &agent) {
    if (call_ && !call_->done()) return 0;
    if (call_ && call_->outcome().status != DTRAIN_OK)
        fail(agent, call_->outcome(), call_->error());
    call_.reset();
    moved_ns = agent.now();
    if (outcome_.status == DTRAIN_OK) {
        if (step() != Step::done) return 1;
        outcome_.bytes = result_bytes_;
    }
    comm_.faults().operation_ended(*this);
    agent.finish(this, outcome_, text_);
    return 1;
}

Sequence::Step Sequence::call(const Call &call) {
    int64_t left_ns = ends_ns_ == INT64_MAX ? -1 : std::max<int64_t>(ends_ns_ - agent_->now(), 1);
    Status s = comm_.post(
        call,
        {.request = &call_.emplace(), .timeout_ns = left_ns, .priority = priority, .inside = true});
    if (s == DTRAIN_OK) return Step::waits;
    call_.reset();
    return broken(s, -1);
}

Sequence::Step Sequence::broken(Status status, int32_t rank) {
    char text[error_text_size]; // a copy, because the communicator's work may replace it
    std::snprintf(text, sizeof text, "%s", error_text());
    engine::Outcome outcome = {.status = status, .peer = rank};
    comm_.faults().operation_failed(*this, outcome, text);
    fail(*agent_, outcome, text);
    return Step::again;
}

void Sequence::unable(engine::Agent &agent, Status status, const char *text) {
    const engine::Outcome outcome = {.status = status};
    comm_.faults().operation_failed(*this, outcome, text);
    fail(agent, outcome, text);
}

// The call in progress is also an operation of the communicator and ends by the same failure.
void Sequence::fail(engine::Agent &agent, const engine::Outcome &outcome, const char *text) {
    if (outcome_.status != DTRAIN_OK) return;
    outcome_ = outcome;
    std::snprintf(text_, sizeof text_, "%s", text);
    agent.wake(this);
}

} // namespace dtrain::collectives
