// Measures the parameters of the cost model between the ranks of a communicator.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"

#include <functional>

namespace dtrain::collectives {

// Collective and blocking, as are all its functions. Ranks work in pairs, all pairs at the same
// time, so that shared resources are shared as in a job; the slowest pair counts.
class Measurement {
  public:
    explicit Measurement(Communicator &comm) : comm_(comm) {}

    // Measures latency and overhead with small messages in round trips and in a stream, the link
    // with large messages, sums and copies by doing them.
    Status network(NetworkModel &out);
    // Measures the round trip of messages of this size, in ns.
    Status messages(uint64_t bytes, double &ns);
    // Measures the median time of an all-reduce on the slowest rank, in ns.
    Status allreduce(uint64_t bytes, double &ns);

  private:
    using Work = std::function<Status()>;
    Status median(int samples, const Work &work, double &ns); // on the slowest rank
    Status exchange(void *buffer, uint64_t bytes);            // a round trip
    Status stream(void *buffer, int messages);
    Status send(void *buffer, uint64_t bytes);
    Status receive(void *buffer, uint64_t bytes);
    int32_t partner() const; // -1: this rank has none

    Communicator &comm_;
};

} // namespace dtrain::collectives
