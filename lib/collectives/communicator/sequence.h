// An operation that consists of several calls on a communicator with arithmetic between them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"
#include "engine/operation.h"

#include <cstdint>
#include <optional>

namespace dtrain::collectives {

// Runs in the agent like every operation, for blocking and asynchronous callers alike. Each call
// begins when the one before is done, so a sequence of several calls needs a private communicator
// on which nobody else makes calls. When one of its calls fails, the sequence fails with that
// error; when the sequence itself fails, it breaks the communicator, so that no rank waits for it.
class Sequence : public engine::Operation {
  public:
    // The calls have the sequence's priority, which hand_over() sets.
    Sequence(engine::Request *completed, Communicator &comm, int64_t timeout_ns)
        : Operation(completed), comm_(comm), ends_ns_(comm.deadline(timeout_ns)) {
        polled = true;
    }

    void start(engine::Agent &agent) override;
    int advance(engine::Agent &agent) override;
    void fail(engine::Agent &agent, const engine::Outcome &outcome, const char *text) override;
    void timed_out(engine::Agent &) override {} // the calls have the deadline
    void unable(engine::Agent &agent, Status status, const char *text) override;

  protected:
    enum class Step { again, waits, done };
    // Called under the agent's lock when no call is in progress. Does a bounded amount of
    // arithmetic, or begins the next call. done: the result is complete.
    virtual Step step() = 0;
    Step call(const Call &call); // begins the call
    // Ends the sequence on all ranks with the text of the last dtrain::fail(). rank: the rank at
    // fault.
    Step broken(Status status, int32_t rank);
    // The request of a call that the caller's thread posts before the sequence itself.
    engine::Request *first_call() { return &call_.emplace(); }
    void set_result_bytes(uint64_t bytes) { result_bytes_ = bytes; }

    Communicator &comm_;

  private:
    const int64_t ends_ns_;
    engine::Agent *agent_ = nullptr;
    std::optional<engine::Request> call_; // the call in progress
    uint64_t result_bytes_ = 0;
    engine::Outcome outcome_;
    char text_[error_text_size] = {};
};

} // namespace dtrain::collectives
