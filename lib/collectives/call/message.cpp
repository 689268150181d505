// Moves one point-to-point message through a transport.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/call/message.h"

#include "base/uncancelled.h"
#include "engine/tag.h"

#include <cstdio>
#include <string>
#include <utility>

namespace dtrain::collectives {
namespace {

constexpr int64_t look_ns = 200 * us; // how long a receive from any rank stays in one transport

} // namespace

MessageOperation::MessageOperation(engine::Request *completed, Params &&params, bool on_stack)
    : Operation(completed, on_stack), params_(std::move(params)) {
    text_[0] = '\0';
    done = &event;
    completed->cancellable = this;
}

bool MessageOperation::run(engine::Agent &agent) {
    if (!params_.elsewhere.empty() || gate != nullptr || agent.timeline().on()) return false;
    const Uncancelled uncancelled;
    const engine::WaitPolicy policy = agent.policy();
    engine::Idle idle(policy);
    bool is_through = false, goes_on = true;
    auto look = [&] {
        if (!pending_) pending_ = hand_over() == DTRAIN_OK;
        if (pending_) agent.poll(*params_.mesh->device(current()));
        is_through = ended_ && outcome_.status == DTRAIN_OK;
        // Errors are found again, and reported, once the message is posted.
        goes_on = pending_ && policy.spin_ns != 0;
    };
    while (agent.alone(look) && goes_on && idle.pass()) {
    }
    if (!is_through) return false;
    engine::Request *completed = request;
    const engine::Outcome outcome = outcome_;
    dispose();
    completed->complete(outcome);
    return true;
}

void MessageOperation::start(engine::Agent &agent) {
    agent_ = &agent;
    if (params_.listener->operation_started(*this)) agent.wake(this);
}

int MessageOperation::advance(engine::Agent &agent) {
    if (pending_) return look_elsewhere(agent);
    if (lost_ && outcome_.status == DTRAIN_OK) return 0;
    if (ended_ || outcome_.status != DTRAIN_OK) {
        end();
        return 1;
    }
    Status s = hand_over();
    pending_ = s == DTRAIN_OK;
    bool again = s == DTRAIN_ERR_BUSY || engine::connection_lost(s); // try again later
    if (!pending_ && !again) fail(agent, {.status = s}, error_text());
    agent.set_polled(this, again || (pending_ && !params_.elsewhere.empty()));
    move_ns_ = agent.now() + look_ns;
    return again ? 0 : 1;
}

Status MessageOperation::hand_over() {
    bool sends = params_.direction == Direction::send;
    // A receive from any rank precedes all later receives of its tag, whichever transport they use.
    uint32_t member = sends ? params_.member : UINT32_MAX;
    uint64_t tag = sends ? params_.tag : params_.tag & ~engine::source_mask;
    engine::MessageOrder &order = params_.mesh->order();
    dtrain_tp_iov_t iov = {.addr = params_.buffer, .len = params_.bytes, .mr = nullptr};
    Status s = DTRAIN_ERR_BUSY;
    if (order.is_next(member, tag, this) && (gate == nullptr || agent_->passes_gate(this)))
        s = sends ? params_.mesh->send(params_.member, params_.tag, &iov, 1, this)
                  : params_.mesh->recv(current(), params_.tag, params_.mask, &iov, 1, this);
    if (s == DTRAIN_OK && params_.elsewhere.empty())
        order.release(this);
    else
        order.hold(member, tag, this);
    return s;
}

// Withdraws the receive to try the next transport. If it has matched meanwhile, it ends as usual.
int MessageOperation::look_elsewhere(engine::Agent &agent) {
    bool stays = params_.elsewhere.empty() || moving_ || outcome_.status != DTRAIN_OK;
    if (stays || agent.now() < move_ns_) return 0;
    moving_ = true;
    params_.mesh->cancel(current(), this);
    return 0;
}

void MessageOperation::event(engine::Completion *self, const dtrain_tp_done_t &event) {
    auto &message = *static_cast<MessageOperation *>(self);
    message.pending_ = false;
    bool moves = std::exchange(message.moving_, false) && event.status == DTRAIN_ERR_CANCELED;
    if (moves && message.outcome_.status == DTRAIN_OK) {
        message.at_ = (message.at_ + 1) % (1 + message.params_.elsewhere.size());
        return message.wake();
    }
    const bool received = message.params_.direction == Direction::receive;
    const bool is_lost = engine::connection_lost(event.status); // the listener finds out why
    message.lost_ = is_lost && !received; // a receive may still get another message
    message.ended_ = !is_lost;
    if (is_lost) return message.wake();
    engine::Outcome &outcome = message.outcome_;
    if (outcome.status == DTRAIN_OK) {
        outcome.status = event.status;
        outcome.bytes = event.bytes;
        if (received && event.status >= DTRAIN_ERR_TRUNCATED)
            outcome.peer = int32_t(engine::tag_source(event.tag));
        if (event.status != DTRAIN_OK) [[unlikely]]
            message.explain(event);
    }
    message.wake();
}

// Not inlined: the texts would cost every message stores to the stack.
[[gnu::noinline]] void MessageOperation::explain(const dtrain_tp_done_t &event) {
    const bool received = params_.direction == Direction::receive;
    if (event.status == DTRAIN_ERR_TRUNCATED) {
        std::snprintf(text_, sizeof text_,
                      "recv from rank %d: the message has %llu bytes, the buffer %llu",
                      outcome_.peer, static_cast<unsigned long long>(event.bytes),
                      static_cast<unsigned long long>(params_.bytes));
    } else if (event.status == DTRAIN_ERR_CORRUPT && params_.rank >= 0) {
        outcome_.peer = params_.rank;
        std::snprintf(text_, sizeof text_, "%s rank %d: %s", received ? "recv from" : "send to",
                      outcome_.peer, params_.mesh->violation(params_.member, 0).c_str());
    } else {
        std::snprintf(text_, sizeof text_, "%s: %s", received ? "recv" : "send",
                      status_text(event.status));
    }
}

void MessageOperation::fail(engine::Agent &agent, const engine::Outcome &outcome,
                            const char *text) {
    if (outcome_.status != DTRAIN_OK) return;
    outcome_ = outcome;
    std::snprintf(text_, sizeof text_, "%s", text);
    if (pending_) params_.mesh->withdraw(current(), this);
    agent.wake(this);
}

void MessageOperation::stalled(engine::Agent &) {
    if (outcome_.status == DTRAIN_OK) params_.listener->operation_stalled(*this);
}

void MessageOperation::timed_out(engine::Agent &agent) {
    std::string text = "recv from " +
                       (params_.rank < 0 ? "any rank" : "rank " + std::to_string(params_.rank)) +
                       ": timed out; no message arrived";
    if (params_.direction == Direction::send) {
        std::string trouble = params_.mesh->trouble(params_.member);
        text = "send to rank " + std::to_string(params_.rank) + ": timed out; " +
               (trouble.empty() ? "the receiver did not take it" : trouble);
    }
    fail(agent, {.status = DTRAIN_ERR_TIMEOUT}, text.c_str());
}

void MessageOperation::describe(trace::Record &record) const {
    record.name = params_.direction == Direction::send ? "send" : "recv";
    record.bytes = outcome_.bytes;
    record.group = engine::tag_group(params_.tag);
    if (params_.rank >= 0) record.peer = params_.rank;
}

void MessageOperation::wake() {
    if (agent_ != nullptr) agent_->wake(this);
}

void MessageOperation::end() {
    params_.mesh->order().release(this);
    params_.listener->operation_ended(*this);
    agent_->finish(this, outcome_, text_);
}

} // namespace dtrain::collectives
