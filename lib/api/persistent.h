// Collectives that are prepared once and started many times.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "api/operation.h"

namespace dtrain::api {

inline bool wants_persistent(const dtrain_op_params_t *params) { // may be NULL
    return params != nullptr && params->struct_size >= 8 &&
           (params->flags & DTRAIN_OP_PERSISTENT) != 0;
}

Status make_persistent(dtrain_comm *comm, const collectives::Call &call,
                       const dtrain_op_params_t *params, dtrain_request_t **request_p);

} // namespace dtrain::api
