// Writes the timeline's records to its file periodically.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/agent.h"
#include "engine/backgrounds.h"

#include <cstdint>

namespace dtrain::engine {

class TimelineWriter final : public Background {
  public:
    explicit TimelineWriter(Agent &agent) : agent_(agent) {}

    int event_fd() override { return -1; } // it acts on time only; poll() ignores -1
    int64_t next_deadline_ns() override { return next_ns_; }
    void out_of_memory() override { next_ns_ = agent_.clock().now_ns() + long_pause; }
    void work() override {
        int64_t now = agent_.clock().now_ns();
        if (now < next_ns_) return;
        bool busy = agent_.timeline().write_out() > many;
        next_ns_ = now + (busy ? short_pause : long_pause);
    }

  private:
    static constexpr uint64_t many = 1 << 14; // records; the ring holds four times as many
    static constexpr int64_t short_pause = 2 * ms, long_pause = 20 * ms;

    Agent &agent_;
    int64_t next_ns_ = 0; // under the backgrounds' lock
};

} // namespace dtrain::engine
