// What must hold of a table that outlives workers, on a dedicated server.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "caller.h"

namespace dtrain::simulator {

class LastingTable {
  public:
    explicit LastingTable(Caller &caller) : caller_(caller) {}
    LastingTable(const LastingTable &) = delete;
    bool is_made() const { return table_ != nullptr; }
    bool make(dtrain_comm_t *comm);
    void destroy();
    // Whether all went well. change: of the mode. All ranks make these calls.
    bool use(dtrain_comm_t *comm, uint32_t mode, bool change);

  private:
    bool check(dtrain_status_t status, const char *call);
    bool barrier(dtrain_comm_t *comm);

    Caller &caller_;
    dtrain_table_t *table_ = nullptr;
};

} // namespace dtrain::simulator
