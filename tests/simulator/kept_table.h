// A table whose checkpoints outlive the job: what was saved can be restored, by this job or by the
// next one, whatever has befallen its ranks and their disks meanwhile.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "caller.h"

namespace dtrain::simulator {

// All ranks of the communicator make the same calls, with the same chief.
class KeptTable {
  public:
    explicit KeptTable(Caller &caller) : caller_(caller) {}

    bool make(dtrain_comm_t *comm);
    bool is_made() const { return table_ != nullptr; }
    void destroy();
    bool save(int chief);    // all push before
    bool restore(int chief); // the newest

  private:
    bool barrier();
    bool check(dtrain_status_t status, const char *call);
    bool save_here();
    int64_t restore_here(); // the step, 0: there is none, -1: it failed
    bool has_values(double wanted);

    Caller &caller_;
    dtrain_comm_t *comm_ = nullptr;
    dtrain_table_t *table_ = nullptr;
    double pushed_ = 0;  // to each element
    uint64_t saved_ = 0; // checkpoints, the same number on all ranks
};

} // namespace dtrain::simulator
