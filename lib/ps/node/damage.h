// Tells the log of messages of tables that were changed on their way.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/agent.h"

#include <cstdint>
#include <string_view>

namespace dtrain::ps {

// Such a message is dropped like a lost one, and the client repeats the request. So no call fails,
// and the log alone tells of the link.
class Damage {
  public:
    // A message from this member came over this way. Under the agent's lock. One line a second.
    void tell(engine::Agent &agent, uint32_t member, std::string_view way);

  private:
    int64_t next_line_ns_ = 0;
    uint64_t untold_ = 0;
};

} // namespace dtrain::ps
