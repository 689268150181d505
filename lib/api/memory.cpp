// Implements dtrain_mem_*.
// SPDX-License-Identifier: Apache-2.0
#include "api/guard.h"
#include "api/handles.h"

using dtrain::fail;
using dtrain::fail_within;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::api::guard_new;
using dtrain::memory::Registration;

namespace {

// Calls make(registration) under the agent's lock, and registers the result.
template <class F> Status add_memory(dtrain_context_t *context, dtrain_mem_t **mem_p, F &&make) {
    auto fresh = std::make_unique<dtrain_mem>(context);
    Status s = DTRAIN_OK;
    context->agent->locked([&] { s = make(fresh->registration); });
    if (s != DTRAIN_OK) return s;
    context->registry.add(fresh->registration.get());
    *mem_p = fresh.release();
    return DTRAIN_OK;
}

} // namespace

dtrain_status_t dtrain_mem_register(dtrain_context_t *context, const dtrain_mem_params_t *params,
                                    dtrain_mem_t **mem_p) {
    if (Status s = check_handle(context, "context"); s != DTRAIN_OK) return s;
    if (params == nullptr || mem_p == nullptr)
        return fail(DTRAIN_ERR_INVALID, "mem_register: %s is NULL",
                    params == nullptr ? "params" : "mem_p");
    return guard_new([&]() -> Status {
        dtrain_mem_params_t given;
        if (Status s = dtrain::api::take(given, params); s != DTRAIN_OK) return s;
        dtrain::accel::Where where;
        if (context->domains.any() && given.mem_type != DTRAIN_MEM_DMABUF)
            if (Status s = context->domains.find(given.address, given.length, where);
                s != DTRAIN_OK)
                return fail_within(s, "register");
        if (where.domain != nullptr) given.mem_type = DTRAIN_MEM_CUDA;
        return add_memory(context, mem_p, [&](std::unique_ptr<Registration> &out) {
            return Registration::make(context->agent->devices(), given, out);
        });
    });
}

dtrain_status_t dtrain_mem_alloc(dtrain_context_t *context, uint64_t bytes, dtrain_mem_t **mem_p) {
    if (Status s = check_handle(context, "context"); s != DTRAIN_OK) return s;
    if (mem_p == nullptr) return fail(DTRAIN_ERR_INVALID, "mem_alloc: mem_p is NULL");
    return guard_new([&]() -> Status {
        return add_memory(context, mem_p, [&](std::unique_ptr<Registration> &out) {
            return Registration::allocate(context->agent->devices(), bytes, out);
        });
    });
}

void *dtrain_mem_address(const dtrain_mem_t *mem) {
    return mem == nullptr ? nullptr : const_cast<uint8_t *>(mem->registration->begin());
}

dtrain_status_t dtrain_mem_deregister(dtrain_mem_t *mem) {
    if (mem == nullptr) return DTRAIN_OK;
    if (!mem->birth.here()) return DTRAIN_OK;
    return guard([&] {
        if (Status s = mem->context->registry.remove(mem->registration.get()); s != DTRAIN_OK)
            return s;
        mem->context->agent->locked([&] { mem->registration.reset(); });
        delete mem;
        return Status{DTRAIN_OK};
    });
}
