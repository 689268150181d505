// Runs one schedule over any transport: the operation behind every collective that does not run in
// shared memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/mesh.h"
#include "engine/plan.h"
#include "engine/staging.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace dtrain::engine {

// The interface through which the owner of operations (a communicator) hears of them. Called under
// the agent's lock.
class OperationListener {
  public:
    virtual bool operation_started(Operation &operation) = 0; // false: the listener has failed it
    virtual void operation_failed(Operation &operation, const Outcome &outcome,
                                  const char *text) = 0;
    virtual void operation_stalled(Operation &operation) = 0;
    // The last call; the operation does not exist afterwards.
    virtual void operation_ended(Operation &operation) = 0;

  protected:
    ~OperationListener() = default;
};

struct RunParams {
    std::shared_ptr<const Plan> plan;
    Mesh *mesh = nullptr;
    Staging *staging = nullptr;
    OperationListener *listener = nullptr;
    std::span<const uint32_t> members; // rank -> member; outlives the run
    uint32_t rank = 0;
    uint32_t group = 0; // tag's group id
    uint64_t bits = 0;  // collective_bits()
    const void *input = nullptr;
    void *output = nullptr;
    uint32_t dtype = 0, op = 0; // of the steps that reduce
    uint64_t result_bytes = 0;  // for the outcome
    const char *name = "";      // for the timeline, as `bytes`; static storage
    uint64_t bytes = 0;
};

class ScheduleRun final : public Operation {
  public:
    ScheduleRun(Request *completed, RunParams params, bool on_stack = false);
    ~ScheduleRun() override;

    void start(Agent &agent) override;
    int advance(Agent &agent) override;
    void fail(Agent &agent, const Outcome &outcome, const char *text) override;
    void stalled(Agent &agent) override;
    std::string missing() const override;
    void timed_out(Agent &agent) override;
    void unable(Agent &agent, Status status, const char *text) override;
    bool waits_for(uint32_t rank) const override;
    void describe(trace::Record &record) const override;

  private:
    static void step_event(Completion *self, const dtrain_tp_done_t &event);

    uint32_t index(const StepRun &step) const { return uint32_t(&step - memory_->steps.data()); }
    uint8_t *place(const Place &place) const;
    bool issue(uint32_t i); // false: it cannot be issued now
    bool next(uint32_t &i);
    bool must_hold(uint32_t i) const;
    bool is_first(uint32_t i) const; // first in flight among the sends or the receives
    uint32_t member(const Step &step) const { return params_.members[uint32_t(step.peer)]; }
    uint32_t rail(const Step &step) const;
    Status post_send(uint32_t i);
    Status post_recv(uint32_t i, void *into);
    void work_locally(uint32_t i);
    void work_on_sums(const Step &step, uint64_t count); // ADASUM
    void weigh(const Step &step, uint64_t count);
    void compare(const Step &step);
    void step_done(uint32_t i);
    bool can_advance() const;
    void trace_begin(StepRun &step);
    void trace_end(StepRun &step, StepKind kind) {
        if (step.begun_ns != 0) [[unlikely]]
            record(step, kind);
    }
    void record(StepRun &step, StepKind kind);
    void broken(Status status, int32_t peer_rank, const char *what);
    void end_if_idle();

    const RunParams params_;
    Agent *agent_ = nullptr;
    std::unique_ptr<RunMemory> memory_; // exists from start() on
    // Number of steps: not done, in transports, holding staging memory.
    uint32_t left_ = 0, pending_ = 0, staged_ = 0;
    uint32_t first_open_ = 0; // all steps before it are done
    uint64_t moving_[2] = {}; // bytes of sends and receives that are in transports
    Outcome outcome_;
    char text_[error_text_size]; // "" at first
};

} // namespace dtrain::engine
