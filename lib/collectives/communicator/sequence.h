// An operation made of calls on a communicator with arithmetic between them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"
#include "engine/operation.h"

#include <cstdint>
#include <optional>

namespace dtrain::collectives {

// Runs in the agent like every operation: blocking and asynchronous callers are the same to it. Its
// later calls are made whenever the ones before are done, so a sequence of several needs a
// communicator of its own, on which nobody else calls. When one of its calls fails, it fails with
// that; when it fails by itself, it breaks the communicator, so that no rank waits for it.
class Sequence : public engine::Operation {
  public:
    // Its calls have its priority, which hand_over() gives it.
    Sequence(engine::Request *completed, Communicator &comm, int64_t timeout_ns)
        : Operation(completed), comm_(comm), ends_ns_(comm.deadline(timeout_ns)) {
        polled = true;
    }

    void start(engine::Agent &agent) override;
    int advance(engine::Agent &agent) override;
    void fail(engine::Agent &agent, const engine::Outcome &outcome, const char *text) override;
    void timed_out(engine::Agent &) override {} // its calls have the deadline
    void out_of_memory(engine::Agent &agent, const char *text) override;

  protected:
    enum class Step { again, waits, done };
    // Under the agent's lock, when no call is in work: a bounded amount of arithmetic, or the next
    // call. done: the result is there.
    virtual Step step() = 0;
    Step call(const Call &call); // begins it
    // Ends the sequence on all ranks, with the text that dtrain::fail() left. rank: the guilty one.
    Step broken(Status status, int32_t rank);
    // For a call that is posted before the sequence itself, by the caller's thread.
    engine::Request *first_call() { return &call_.emplace(); }
    void set_result_bytes(uint64_t bytes) { result_bytes_ = bytes; }

    Communicator &comm_;

  private:
    const int64_t ends_ns_;
    engine::Agent *agent_ = nullptr;
    std::optional<engine::Request> call_; // in work
    uint64_t result_bytes_ = 0;
    engine::Outcome outcome_;
    char text_[error_text_size] = {};
};

} // namespace dtrain::collectives
