// SPDX-License-Identifier: Apache-2.0
#include "collectives/window_operation.h"

#include <cstdio>
#include <cstring>

namespace dtrain::collectives {

WindowOperation::WindowOperation(engine::Request *completed, const WindowCall &call,
                                 engine::OperationListener &listener, bool on_stack)
    : Operation(completed), call_(call), rank_(uint32_t(call.spec.rank)),
      ranks_(uint32_t(call.spec.size)), listener_(listener), on_stack_(on_stack) {
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
    Step s = step();
    if (s == Step::idle) return 0;
    moved_ns = agent.now();
    if (s == Step::done) {
        listener_.operation_ended(*this);
        agent.finish(this, {.bytes = call_.result_bytes}, "");
    } else if (s == Step::mismatch && !reported_) {
        reported_ = true; // what differs is found by comparing the calls
        listener_.operation_stalled(*this);
    }
    if (s == Step::broken && !reported_) {
        reported_ = true;
        char text[error_text_size]; // what the listener does may replace it
        std::snprintf(text, sizeof text, "rank %d: %s", broken_.peer, error_text());
        listener_.operation_failed(*this, broken_, text);
    }
    return s == Step::mismatch || s == Step::broken ? 0 : 1;
}

bool WindowOperation::may_announce() {
    uint64_t before = call_.number - 1;
    for (; announced_ < ranks_; announced_++)
        if (call_.window->flags(announced_)
                .headers[before & 1]
                .number.load(std::memory_order_acquire) < before)
            return false;
    return true;
}

void WindowOperation::announce(const void *data, uint64_t bytes) {
    Header &own = call_.window->flags(rank_).headers[call_.number & 1];
    own.fingerprint = call_.fingerprint;
    if (bytes > 0) std::memcpy(own.data, data, bytes);
    own.number.store(call_.number, std::memory_order_release);
    call_.window->ring();
}

WindowOperation::Peer WindowOperation::look_at(uint32_t rank) const {
    const Header &of_peer = header(rank);
    if (of_peer.number.load(std::memory_order_acquire) < call_.number) return Peer::missing;
    return of_peer.fingerprint == call_.fingerprint ? Peer::there : Peer::differs;
}

// Nothing of it is in a transport, so it may end at once. Its turn never ends: neither does
// anything that comes after it on this window.
void WindowOperation::fail(engine::Agent &agent, const engine::Outcome &outcome, const char *text) {
    listener_.operation_ended(*this);
    agent.finish(this, outcome, text);
}

void WindowOperation::stalled(engine::Agent &) { listener_.operation_stalled(*this); }

bool WindowOperation::waits_for(uint32_t rank) const {
    return call_.window->turn.load(std::memory_order_acquire) == call_.number - 1 && lacks(rank);
}

void WindowOperation::timed_out(engine::Agent &) {
    listener_.operation_failed(*this, {.status = DTRAIN_ERR_TIMEOUT}, "timed out");
}

void WindowOperation::dispose() {
    if (!on_stack_) delete this;
}

} // namespace dtrain::collectives
