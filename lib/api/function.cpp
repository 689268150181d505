// Implements dtrain_function_*.
// SPDX-License-Identifier: Apache-2.0
#include "api/guard.h"
#include "api/handles.h"
#include "dtrain_function.h"

using dtrain::fail;
using dtrain::Status;

dtrain_status_t dtrain_function_register(dtrain_context_t *context,
                                         const dtrain_function_t *function) {
    if (Status s = dtrain::api::check_handle(context, "context"); s != DTRAIN_OK) return s;
    if (function == nullptr) return fail(DTRAIN_ERR_INVALID, "function_register: function is NULL");
    return dtrain::api::guard([&] { return context->functions.add(*function); });
}
