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
    bool barrier() const {
        caller.begin();
        return check(dtrain_barrier(comm, nullptr, nullptr), "barrier");
    }
};

// Each returns whether all went well.
bool average_with_neighbors(const Here &here, size_t count);
bool cancel_a_receive(const Here &here);
bool sum_in_registered_memory(const Here &here, size_t count);
bool sum_in_own_memory(const Here &here, size_t count); // which is registered
bool sum_again_and_again(const Here &here, size_t count);
bool move_unequal_blocks(const Here &here, size_t count, int root);
bool sum_compressed(const Here &here, size_t count, uint32_t kind); // DTRAIN_COMPRESS_*
// Bit i of `chosen`: rank i is in it. The latter by these ranks alone.
bool sum_in_a_subset(const Here &here, size_t count, uint64_t chosen);
bool sum_in_a_group(const Here &here, size_t count, uint64_t chosen, int tag);
bool take_events(const Here &here, size_t count);
bool exchange_with_neighbors(const Here &here, size_t count);
bool join_queue_early(const Here &here, size_t count, int who); // that rank has run out of data

} // namespace dtrain::simulator
