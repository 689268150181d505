// Fits the cost model and the limits to the machine (dtrain_comm_tune()).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"
#include "collectives/communicator/measure.h"
#include "collectives/cost/tuning.h"

namespace dtrain::collectives {

// Limits the messages that are sent before they are received, on the transport between the two
// halves of the ranks. Returns the old limit.
uint64_t limit_eager(Communicator &comm, uint64_t bytes);

// Tries values of each limit; afterwards the communicator has its own again.
class Tuner {
  public:
    explicit Tuner(Communicator &comm) : comm_(comm), measurement_(comm) {}
    Status measure(Tuning &out); // collective and blocking

  private:
    Status find_exchange_limit(uint64_t &best);
    Status find_eager_limit(uint64_t &best);
    Status find_chunk(uint64_t &best);

    Communicator &comm_;
    Measurement measurement_;
};

} // namespace dtrain::collectives
