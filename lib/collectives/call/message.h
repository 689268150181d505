// One point-to-point message.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/executor.h"
#include "engine/mesh.h"

#include <cstdint>
#include <vector>

namespace dtrain::collectives {

class MessageOperation final : public engine::Operation, private engine::Completion {
  public:
    enum class Direction { send, receive };
    struct Params {
        Direction direction = Direction::send;
        engine::Mesh *mesh = nullptr;
        engine::OperationListener *listener = nullptr;
        int32_t rank = -1;                    // the peer's; -1: anybody
        uint32_t member = 0;                  // the peer; for a receive from anybody one of them
        std::vector<uint32_t> elsewhere = {}; // from anybody: one for each other transport
        uint64_t tag = 0, mask = 0;
        void *buffer = nullptr;
        uint64_t bytes = 0;
    };
    MessageOperation(engine::Request *completed, Params &&params, bool on_stack = false);

    // Instead of posting it, for a blocking call: moves the message without the agent's bookkeeping
    // as long as there is nothing else to do and the peer answers soon. False: post it, begun or
    // not.
    bool run(engine::Agent &agent);

    void start(engine::Agent &agent) override;
    int advance(engine::Agent &agent) override;
    void fail(engine::Agent &agent, const engine::Outcome &outcome, const char *text) override;
    void stalled(engine::Agent &agent) override;
    void timed_out(engine::Agent &agent) override;
    bool waits_for(uint32_t rank) const override { return params_.rank == int32_t(rank); }
    bool waits_for_anybody() const override { return params_.rank < 0; }
    void describe(trace::Record &record) const override;

  private:
    static void event(engine::Completion *self, const dtrain_tp_done_t &event);
    void wake(); // once it is posted
    void end();
    Status hand_over(); // when it is its turn
    uint32_t current() const { return at_ == 0 ? params_.member : params_.elsewhere[at_ - 1]; }
    int look_elsewhere(engine::Agent &agent);

    const Params params_;
    engine::Agent *agent_ = nullptr;                      // once it is posted
    bool pending_ = false, ended_ = false, lost_ = false; // in the transport, done, not any more
    // A receive that looks in several transports is in one at a time, so that it gets one message.
    size_t at_ = 0;       // in which
    bool moving_ = false; // withdrawn from there, to go on
    int64_t move_ns_ = 0; // when
    engine::Outcome outcome_;
    char text_[error_text_size]; // "" at first; the rest costs more than a small message
};

} // namespace dtrain::collectives
