// A scheduler that decides which channel sends to a server next, once priorities are in use.
// SPDX-License-Identifier: Apache-2.0
//
// A transport sends in the order in which it was given the requests. So all channels to one server
// share a bound of bytes in flight, and the channel with the most urgent piece goes first. Pulls in
// modes where they may wait for other workers do not count towards the bound: a request that waits
// for a worker must not hold back requests that this worker waits for. A channel that was held
// longer than `patience` sends regardless of the bound, so no channel waits forever.
#pragma once
#include "base/clock.h"

#include <cstdint>
#include <vector>

namespace dtrain::ps {

class RequestChannel;

class SendScheduler {
  public:
    SendScheduler(uint32_t servers, uint64_t most_bytes)
        : servers_(servers), most_bytes_(most_bytes) {}

    void use() { used_ = true; }
    bool used() const { return used_; }
    // Whether this many more bytes may be in flight to and from the server. One request always may.
    bool admits(uint32_t server, uint64_t bytes) const {
        const uint64_t now = servers_[server].in_flight;
        return now == 0 || now + bytes <= most_bytes_;
    }
    void begin(uint32_t server, uint64_t bytes) { servers_[server].in_flight += bytes; }
    void end(uint32_t server, uint64_t bytes) { servers_[server].in_flight -= bytes; }
    void hold(uint32_t server, RequestChannel &channel); // until the next pump()
    void forget(uint32_t server, const RequestChannel &channel);
    // Lets the held channels and this one send, most urgent first, as far as the bound permits.
    void pump(uint32_t server, RequestChannel &channel, int64_t now);

    static constexpr int64_t patience = 20 * ms; // how long a channel may be held

  private:
    struct PerServer {
        uint64_t in_flight = 0;
        std::vector<RequestChannel *> held;
    };
    std::vector<PerServer> servers_;
    const uint64_t most_bytes_;
    std::vector<RequestChannel *> going_; // scratch of pump()
    bool used_ = false;
};

} // namespace dtrain::ps
