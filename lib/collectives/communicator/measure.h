// Measures what the cost model needs, between the ranks of a communicator.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"

#include <functional>

namespace dtrain::collectives {

// Collective and blocking, as its functions. Ranks work in pairs, all pairs at the same time, so
// that what they share is shared as in a job; the slowest pair counts.
class Measurement {
  public:
    explicit Measurement(Communicator &comm) : comm_(comm) {}

    // Latency and overhead by small messages there and back and in a stream, the link by large
    // ones, sums and copies by doing them.
    Status network(NetworkModel &out);
    // Of messages of so many bytes, there and back.
    Status messages(uint64_t bytes, double &ns);
    // Median of what an all-reduce takes on the slowest rank, in ns.
    Status allreduce(uint64_t bytes, double &ns);

  private:
    using Work = std::function<Status()>;
    Status median(int samples, const Work &work, double &ns); // of the slowest rank
    Status exchange(void *buffer, uint64_t bytes);            // there and back
    Status stream(void *buffer, int messages);
    Status send(void *buffer, uint64_t bytes);
    Status receive(void *buffer, uint64_t bytes);
    int32_t partner() const; // -1: this rank has none

    Communicator &comm_;
};

} // namespace dtrain::collectives
