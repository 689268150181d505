// Makes sure that what the ranks of a communicator create together is equal on all ranks, or not
// created at all.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"

#include <string>
#include <string_view>

namespace dtrain::collectives {

// What one rank wants, item by item, or why it cannot take part. A rank whose own parameters are
// wrong must not just return, because the others would wait for it.
class Agreement {
  public:
    explicit Agreement(cluster::CallKind call) : call_(call) {}
    // Unless status is DTRAIN_OK, this rank cannot take part; the reason is error_text(). The first
    // call with an error counts.
    Agreement &check(Status status);
    Agreement &add(std::string_view name, std::string_view value);
    Agreement &add(std::string_view name, uint64_t value);
    Agreement &add(std::string_view name, double value);
    bool refused() const { return status_ != DTRAIN_OK; }

    // Collective, blocking: every rank reaches the same verdict, and the communicator stays usable.
    // The rank that cannot take part gets its own error; the others get the same status with its
    // rank and text. DTRAIN_ERR_MISMATCH names the first item in which two ranks differ, and both
    // values. Costs an all-reduce of 24 bytes when all ranks agree.
    Status reach(Communicator &comm, int64_t deadline_ns) const;

  private:
    Status compare(Communicator &comm, int64_t deadline_ns) const;
    Status own() const;

    const cluster::CallKind call_;
    Status status_ = DTRAIN_OK;
    std::string text_; // one line per item, or the reason
};

// For a rank that cannot take part: tells the others, so that they do not wait. Returns this rank's
// own error.
Status refuse(Communicator &comm, cluster::CallKind call, Status status);

} // namespace dtrain::collectives
