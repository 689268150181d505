// Work that may take long, done where nobody waits for the agent's lock meanwhile.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

#include <functional>

namespace dtrain::ps {

class Chores {
  public:
    virtual ~Chores() = default;
    // Runs work() without the agent's lock, after all that was started before, and then done()
    // under it, unless the server has ended meanwhile.
    virtual Status start(std::function<void()> work, std::function<void()> done) = 0;
};

} // namespace dtrain::ps
