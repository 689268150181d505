// While it lives, the agent's devices are polled, whatever this thread waits for: by the helper, or
// under manual progress by the thread itself (Agent::stand_in()).
// SPDX-License-Identifier: Apache-2.0
//
// A rank that waits for others' votes has nothing in flight. Its peers may: one whose call has
// failed takes memory back that it had announced to this rank, and breaks the connection off where
// this rank's device does not answer.
#pragma once
#include "engine/agent.h"

namespace dtrain::engine {

class Attendance {
  public:
    explicit Attendance(Agent &agent) : agent_(agent) { agent_.attend(); }
    ~Attendance() { agent_.end_attendance(); }
    Attendance(const Attendance &) = delete;

  private:
    Agent &agent_;
};

} // namespace dtrain::engine
