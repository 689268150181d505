// The operation that moves one point-to-point message.
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
        int32_t rank = -1;   // rank of the peer; -1: any rank
        uint32_t member = 0; // member of the peer; from any rank: one member of the first transport
        std::vector<uint32_t> elsewhere = {}; // from any rank: one member for each other transport
        uint64_t tag = 0, mask = 0;
        void *buffer = nullptr;
        uint64_t bytes = 0;
    };
    MessageOperation(engine::Request *completed, Params &&params, bool on_stack = false);

    // For a blocking call, before it is posted: moves the message without the agent's bookkeeping
    // while there is no other work and the peer answers soon. False: the caller must post it,
    // whether or not it has begun.
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
    void explain(const dtrain_tp_done_t &event); // why it failed, in text_
    void wake();                                 // does nothing before it is posted
    void end();
    Status hand_over(); // hands it to the transport when it is its turn; else BUSY
    uint32_t current() const { return at_ == 0 ? params_.member : params_.elsewhere[at_ - 1]; }
    int look_elsewhere(engine::Agent &agent);

    const Params params_;
    engine::Agent *agent_ = nullptr;                      // set when it is posted
    bool pending_ = false, ended_ = false, lost_ = false; // in the transport; done; connection lost
    // A receive from several transports is in one of them at a time, so that it gets only one
    // message.
    size_t at_ = 0;       // the transport in which it is now
    bool moving_ = false; // being withdrawn, to move to the next one
    int64_t move_ns_ = 0; // when to move on
    engine::Outcome outcome_;
    char text_[error_text_size]; // "" at first; clearing all of it costs more than a small message
};

} // namespace dtrain::collectives
