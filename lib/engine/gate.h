// What an operation waits for before it may use its buffers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

#include <cstdint>

namespace dtrain::engine {

// Its place among the other operations an operation takes when it is posted; its time begins when
// the gate is open.
class Gate {
  public:
    // OK: it is open; IN_PROGRESS: not yet; else why it never will be. Under the agent's lock.
    virtual Status look() = 0;
    // For calls that need the buffers at once: returns when it is open, or fails.
    virtual Status wait(int64_t deadline_ns) = 0;

  protected:
    ~Gate() = default;
};

} // namespace dtrain::engine
