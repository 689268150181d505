// A communicator that this rank is making, and that other members may have by then.
// SPDX-License-Identifier: Apache-2.0
//
// Its last step may end well on some ranks only. Those would wait in its calls, until op.timeout,
// for one that will never make it: so they are told.
#pragma once
#include "cluster/session/session.h"

#include <cstdint>
#include <vector>

namespace dtrain::collectives {

class Unmade {
  public:
    // ids: its members, by their numbers in the job, of which this process is one.
    Unmade(cluster::Session &session, uint64_t uid, std::vector<int32_t> ids)
        : session_(session), uid_(uid), ids_(std::move(ids)) {}
    Unmade(const Unmade &) = delete;
    ~Unmade() {
        if (!made_) tell();
    }
    void made() { made_ = true; }

  private:
    void tell() noexcept; // that it will not be made here, with this thread's error text

    cluster::Session &session_;
    const uint64_t uid_;
    const std::vector<int32_t> ids_;
    bool made_ = false;
};

} // namespace dtrain::collectives
