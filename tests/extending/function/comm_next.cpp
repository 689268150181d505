// SPDX-License-Identifier: Apache-2.0
#include "api/handles.h"

int32_t dtrain_comm_next(const dtrain_comm_t *comm) {
    if (comm == nullptr) return -1;
    return (comm->communicator->rank() + 1) % comm->communicator->size();
}
