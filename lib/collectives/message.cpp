// SPDX-License-Identifier: Apache-2.0
#include "collectives/message.h"

#include "engine/tag.h"

#include <cstdio>
#include <string>

namespace dtrain::collectives {

MessageOperation::MessageOperation(engine::Request *completed, const Params &params)
    : Operation(completed), params_(params) {
    done = &event;
    completed->cancellable = this;
}

void MessageOperation::start(engine::Agent &agent) {
    agent_ = &agent;
    if (params_.listener->operation_started(*this)) agent.wake(this);
}

int MessageOperation::advance(engine::Agent &agent) {
    if (pending_ || (lost_ && outcome_.status == DTRAIN_OK)) return 0;
    if (ended_ || outcome_.status != DTRAIN_OK) {
        end();
        return 1;
    }
    dtrain_tp_iov_t iov = {.addr = params_.buffer, .len = params_.bytes, .mr = nullptr};
    Status s = params_.direction == Direction::send
                   ? send(iov)
                   : params_.mesh->recv(params_.member, params_.tag, params_.mask, &iov, 1, this);
    polled = s == DTRAIN_ERR_BUSY || engine::connection_lost(s); // not now: try again
    if (polled) return 0;
    if (s == DTRAIN_OK)
        pending_ = true;
    else
        fail(agent, {.status = s}, error_text());
    return 1;
}

Status MessageOperation::send(const dtrain_tp_iov_t &iov) {
    engine::SendOrder &order = params_.mesh->order();
    Status s = DTRAIN_ERR_BUSY;
    if (order.is_next(params_.member, params_.tag, this))
        s = params_.mesh->send(params_.member, params_.tag, &iov, 1, this);
    if (s == DTRAIN_OK)
        order.release(this);
    else
        order.hold(params_.member, params_.tag, this);
    return s;
}

void MessageOperation::event(engine::Completion *self, const dtrain_tp_done_t &event) {
    auto &message = *static_cast<MessageOperation *>(self);
    message.pending_ = false;
    message.lost_ = engine::connection_lost(event.status); // the listener finds out why
    message.ended_ = !message.lost_;
    if (message.lost_) return message.agent_->wake(&message);
    engine::Outcome &outcome = message.outcome_;
    if (outcome.status == DTRAIN_OK) {
        outcome.status = event.status;
        outcome.bytes = event.bytes;
        bool received = message.params_.direction == Direction::receive;
        if (received && event.status >= DTRAIN_ERR_TRUNCATED)
            outcome.peer = int32_t(engine::tag_source(event.tag));
        if (event.status == DTRAIN_ERR_TRUNCATED)
            std::snprintf(message.text_, sizeof message.text_,
                          "recv from rank %d: the message has %llu bytes, the buffer %llu",
                          outcome.peer, static_cast<unsigned long long>(event.bytes),
                          static_cast<unsigned long long>(message.params_.bytes));
        else if (event.status != DTRAIN_OK)
            std::snprintf(message.text_, sizeof message.text_, "%s: %s", received ? "recv" : "send",
                          status_text(event.status));
    }
    message.agent_->wake(&message);
}

void MessageOperation::fail(engine::Agent &agent, const engine::Outcome &outcome,
                            const char *text) {
    if (outcome_.status != DTRAIN_OK) return;
    outcome_ = outcome;
    std::snprintf(text_, sizeof text_, "%s", text);
    if (pending_) params_.mesh->cancel(params_.member, this);
    agent.wake(this);
}

void MessageOperation::stalled(engine::Agent &) {
    if (outcome_.status == DTRAIN_OK)
        params_.listener->operation_stalled(*this);
    else if (pending_)
        params_.mesh->drop(params_.member); // what could not be withdrawn goes with its connection
}

void MessageOperation::timed_out(engine::Agent &agent) {
    std::string text = "recv: timed out; nothing came";
    if (params_.direction == Direction::send) {
        std::string trouble = params_.mesh->trouble(params_.member);
        text = "send to rank " + std::to_string(params_.rank) + ": timed out; " +
               (trouble.empty() ? "the receiver did not take it" : trouble);
    }
    fail(agent, {.status = DTRAIN_ERR_TIMEOUT}, text.c_str());
}

void MessageOperation::end() {
    params_.mesh->order().release(this);
    params_.listener->operation_ended(*this);
    agent_->finish(this, outcome_, text_);
}

} // namespace dtrain::collectives
