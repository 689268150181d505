// dtrain_mem_*
// SPDX-License-Identifier: Apache-2.0
#include "api/guard.h"
#include "api/handles.h"

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;

dtrain_status_t dtrain_mem_register(dtrain_context_t *context, const dtrain_mem_params_t *params,
                                    dtrain_mem_t **mem_p) {
    if (Status s = check_handle(context, "context"); s != DTRAIN_OK) return s;
    if (params == nullptr || mem_p == nullptr)
        return fail(DTRAIN_ERR_INVALID, "%s is NULL", params == nullptr ? "params" : "mem_p");
    return guard([&]() -> Status {
        dtrain_mem_params_t given;
        if (Status s = dtrain::api::take(given, params); s != DTRAIN_OK) return s;
        auto fresh = std::make_unique<dtrain_mem>(context);
        Status s = DTRAIN_OK;
        context->agent->locked([&] {
            s = dtrain::memory::Registration::make(context->agent->devices(), given,
                                                   fresh->registration);
        });
        if (s == DTRAIN_OK) *mem_p = fresh.release();
        return s;
    });
}

dtrain_status_t dtrain_mem_deregister(dtrain_mem_t *mem) {
    if (mem == nullptr) return DTRAIN_OK;
    if (!mem->birth.here()) return DTRAIN_OK;
    if (uint32_t n = mem->registration->users.load(); n != 0)
        return fail(DTRAIN_ERR_BUSY, "%u operations still use this memory; wait for them", n);
    return guard([&] {
        mem->context->agent->locked([&] { mem->registration.reset(); });
        delete mem;
        return DTRAIN_OK;
    });
}
