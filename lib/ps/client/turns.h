// Whose requests go next to a server, once priorities are in use.
// SPDX-License-Identifier: Apache-2.0
//
// What a transport was given goes out before whatever comes later. So all lanes to one server share
// a bound of bytes in flight, and the lane that has the most urgent piece goes first. Pulls of
// modes in which they may wait for other workers do not count: whoever waits for a worker must not
// hold back what that worker waits for. What else waits long is overtaken after a while, so nothing
// does for ever.
#pragma once
#include "base/clock.h"

#include <cstdint>
#include <vector>

namespace dtrain::ps {

class Lane;

class Turns {
  public:
    Turns(uint32_t servers, uint64_t most_bytes) : servers_(servers), most_bytes_(most_bytes) {}

    void use() { used_ = true; }
    bool used() const { return used_; }
    // Whether that much more may be in flight to and from the server; one request always may.
    bool admits(uint32_t server, uint64_t bytes) const {
        const uint64_t now = servers_[server].in_flight;
        return now == 0 || now + bytes <= most_bytes_;
    }
    void begin(uint32_t server, uint64_t bytes) { servers_[server].in_flight += bytes; }
    void end(uint32_t server, uint64_t bytes) { servers_[server].in_flight -= bytes; }
    void hold(uint32_t server, Lane &lane); // until pump()
    void forget(uint32_t server, const Lane &lane);
    // The lanes that are held, and this one, go on as far as the bound lets them.
    void pump(uint32_t server, Lane &lane, int64_t now);

    static constexpr int64_t patience = 20 * ms; // of a lane that is held

  private:
    struct PerServer {
        uint64_t in_flight = 0;
        std::vector<Lane *> held;
    };
    std::vector<PerServer> servers_;
    const uint64_t most_bytes_;
    std::vector<Lane *> going_; // pump()'s
    bool used_ = false;
};

} // namespace dtrain::ps
