// What the ranks of a communicator make together they make alike, or none of them makes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"

#include <string>
#include <string_view>

namespace dtrain::collectives {

// What one rank wants, number by number, or why it cannot take part. A rank that finds its own
// parameters wrong must not just return: the others would wait for it.
class Agreement {
  public:
    explicit Agreement(cluster::CallKind call) : call_(call) {}
    // Unless it is DTRAIN_OK, this rank cannot take part, with error_text(). The first one counts.
    Agreement &check(Status status);
    Agreement &add(std::string_view name, std::string_view value);
    Agreement &add(std::string_view name, uint64_t value);
    Agreement &add(std::string_view name, double value);
    bool refused() const { return status_ != DTRAIN_OK; }

    // Collective, blocking: every rank comes to the same verdict, and the communicator stays
    // usable. The rank that cannot take part gets its own error, the others the same status with
    // its rank and text; DTRAIN_ERR_MISMATCH names the first thing in which two ranks differ, and
    // both sides. Costs an all-reduce of 24 bytes where all is well.
    Status reach(Communicator &comm, int64_t deadline_ns) const;

  private:
    Status compare(Communicator &comm, int64_t deadline_ns) const;
    Status own() const;

    const cluster::CallKind call_;
    Status status_ = DTRAIN_OK;
    std::string text_; // a line for each thing, or the reason
};

// For a rank that cannot take part: the others are not left waiting. Returns its own error.
Status refuse(Communicator &comm, cluster::CallKind call, Status status);

} // namespace dtrain::collectives
