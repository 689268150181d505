// Calls of ranks that need nothing of the job but its communicator. All ranks make each of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "caller.h"

namespace dtrain::simulator {

struct Here {
    Caller &caller;
    dtrain_context_t *context;
    dtrain_comm_t *comm;

    int rank() const { return dtrain_comm_rank(comm); }
    bool check(dtrain_status_t status, const char *call) const {
        return caller.check(status, call, caller.plan.op_timeout);
    }
};

// Each returns whether all went well.
bool average_with_neighbors(const Here &here, size_t count);
bool abort_a_copy(const Here &here, int who); // that rank breaks it for all
bool cancel_a_receive(const Here &here);
bool sum_in_registered_memory(const Here &here, size_t count);

} // namespace dtrain::simulator
