// The way from a client to the server in its own process: direct calls, one copy of pulled values.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/client/client.h"
#include "ps/server/server.h"

#include <cstdint>
#include <vector>

namespace dtrain::ps {

// A Wire hands on what it has for that server: send(), withdraw(). run() then does the work,
// outside of calls into the client.
class LocalPath {
  public:
    explicit LocalPath(uint32_t worker) : worker_(worker) {}

    void send(Outgoing &request) { queue_.push_back(&request); }
    void withdraw(Outgoing &request);
    // Serves what was sent, and takes from `out` the answers to the own worker, also those that
    // others have set free; leaves the answers to others. Returns how many events the client got.
    int run(Client &client, Server &server, Responses &out, int64_t now);
    bool idle() const { return queue_.empty() && withdrawn_.empty(); }

  private:
    bool deliver(Client &client, const Response &response, int64_t now);

    const uint32_t worker_;
    std::vector<Outgoing *> queue_, waiting_, withdrawn_;
};

} // namespace dtrain::ps
