// Decides which of the schedules in flight hand their messages to the transports first.
// SPDX-License-Identifier: Apache-2.0
//
// A transport sends its messages in the order in which it got them, and sent messages fill buffers
// on their way until they are received. So a run that others should overtake must not have
// everything in flight at once. Once a context has seen a priority other than the normal one, every
// run sends and receives a bounded number of bytes at a time, and one message at a time while a run
// of a higher priority is in flight. Never zero messages: ranks that wait for the lower run still
// get its data.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace dtrain::engine {

class Precedence { // under the agent's lock
  public:
    void begin(int32_t priority) { in_flight_.push_back(priority); }
    void end(int32_t priority) {
        in_flight_.erase(std::find(in_flight_.begin(), in_flight_.end(), priority));
    }
    void use() { used_ = true; }
    bool used() const { return used_; }
    // Bytes that a run of this priority may have in transports in each direction; one message is
    // always allowed.
    uint64_t bound(int32_t priority) const {
        if (!used_) [[likely]]
            return UINT64_MAX;
        auto higher = [&](int32_t other) { return other > priority; };
        return std::any_of(in_flight_.begin(), in_flight_.end(), higher) ? 0 : usual_bytes;
    }

  private:
    // Enough to keep 100 Gbit/s busy for 40 us, until the next message follows.
    static constexpr uint64_t usual_bytes = 512 << 10;
    std::vector<int32_t> in_flight_; // few
    bool used_ = false;
};

} // namespace dtrain::engine
