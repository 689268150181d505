// The path from a client to the server in the same process: direct calls, and one copy of pulled
// values.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/client/client.h"
#include "ps/server/server.h"

#include <cstdint>
#include <vector>

namespace dtrain::ps {

// The client's Wire forwards send(), withdraw() and settled() for that server. run() then does the
// work, outside of calls into the client.
class LocalPath {
  public:
    explicit LocalPath(uint32_t worker) : worker_(worker) {}

    void send(Outgoing &request) { queue_.push_back(&request); }
    void withdraw(Outgoing &request);
    void settled(Outgoing &request) { std::erase(waiting_, &request); }
    // Serves the requests, and delivers the answers in `out` that are for this worker, also those
    // that requests of other workers have released. Leaves answers for other workers in `out`.
    // Returns the number of events for the client.
    int run(Client &client, Server &server, Responses &out, int64_t now);
    bool idle() const { return queue_.empty() && withdrawn_.empty(); }

  private:
    bool deliver(Client &client, const Response &response, int64_t now);

    const uint32_t worker_;
    std::vector<Outgoing *> queue_, withdrawn_;
    std::vector<Outgoing *> waiting_; // for an answer, or for the end of a repetition
};

} // namespace dtrain::ps
