// Logs damaged messages, a line a second at most.
// SPDX-License-Identifier: Apache-2.0
#include "ps/node/damage.h"

namespace dtrain::ps {

void Damage::tell(engine::Agent &agent, uint32_t member, std::string_view way) {
    untold_++;
    const int64_t now_ns = agent.clock().now_ns();
    if (now_ns < next_line_ns_) return;
    next_line_ns_ = now_ns + second;
    agent.log().write(DTRAIN_LOG_WARN,
                      "a message of a table from member %u over %.*s was changed on its way (%llu "
                      "since the last such line); it is dropped, and sent again",
                      member, int(way.size()), way.data(),
                      static_cast<unsigned long long>(untold_));
    untold_ = 0;
}

} // namespace dtrain::ps
