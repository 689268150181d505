// Implements dtrain_mem_*.
// SPDX-License-Identifier: Apache-2.0
#include "api/guard.h"
#include "api/handles.h"
#include "api/memory_place.h"

using dtrain::fail;
using dtrain::fail_within;
using dtrain::Status;
using dtrain::accel::DeviceMemory;
using dtrain::accel::Where;
using dtrain::api::check_handle;
using dtrain::api::check_memory_kind;
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

Status allocate_host(dtrain_context_t *context, uint64_t bytes, dtrain_mem_t **mem_p) {
    return add_memory(context, mem_p, [&](std::unique_ptr<Registration> &out) {
        return Registration::allocate(context->agent->devices(), bytes, out);
    });
}

// Lets the context know the memory, and other processes map it if that is wanted.
Status add_device_memory(dtrain_context_t *context, std::shared_ptr<DeviceMemory> made, bool shared,
                         dtrain_mem_t **mem_p) {
    auto fresh = std::make_unique<dtrain_mem>(context);
    if (shared) {
        Where where;
        Status s = context->domains.find(made->begin(), made->bytes(), where);
        if (s == DTRAIN_OK) s = made->share(where.allocation_bytes);
        if (s != DTRAIN_OK) return s;
    }
    fresh->on_device = made.get();
    if (Status s = context->domains.known().add(std::move(made)); s != DTRAIN_OK) return s;
    *mem_p = fresh.release();
    return DTRAIN_OK;
}

bool is_shared(const dtrain_mem_params_t &params) {
    return (params.flags & DTRAIN_MEM_SHARED) != 0;
}

Status check_arguments(const char *what, const dtrain_context_t *context,
                       const dtrain_mem_params_t *params, dtrain_mem_t **mem_p) {
    if (Status s = check_handle(context, "context"); s != DTRAIN_OK) return s;
    if (params != nullptr && mem_p != nullptr) return DTRAIN_OK;
    return fail(DTRAIN_ERR_INVALID, "%s: %s is NULL", what, params == nullptr ? "params" : "mem_p");
}

} // namespace

dtrain_status_t dtrain_mem_register(dtrain_context_t *context, const dtrain_mem_params_t *params,
                                    dtrain_mem_t **mem_p) {
    if (Status s = check_arguments("mem_register", context, params, mem_p); s != DTRAIN_OK)
        return s;
    return guard_new([&]() -> Status {
        dtrain_mem_params_t given;
        if (Status s = dtrain::api::take(given, params); s != DTRAIN_OK) return s;
        if (Status s = check_memory_kind(given, "register"); s != DTRAIN_OK) return s;
        Where where;
        if (Status s = dtrain::api::find_place(context->domains, given, where); s != DTRAIN_OK)
            return s;
        if (where.domain == nullptr)
            return add_memory(context, mem_p, [&](std::unique_ptr<Registration> &out) {
                return Registration::make(context->agent->devices(), given, out);
            });
        const Status s =
            add_device_memory(context, DeviceMemory::adopt(where, given.address, given.length),
                              is_shared(given), mem_p);
        return s == DTRAIN_OK ? s : fail_within(s, "register");
    });
}

dtrain_status_t dtrain_mem_alloc(dtrain_context_t *context, uint64_t bytes, dtrain_mem_t **mem_p) {
    if (Status s = check_handle(context, "context"); s != DTRAIN_OK) return s;
    if (mem_p == nullptr) return fail(DTRAIN_ERR_INVALID, "mem_alloc: mem_p is NULL");
    return guard_new([&] { return allocate_host(context, bytes, mem_p); });
}

dtrain_status_t dtrain_mem_create(dtrain_context_t *context, const dtrain_mem_params_t *params,
                                  dtrain_mem_t **mem_p) {
    if (Status s = check_arguments("mem_create", context, params, mem_p); s != DTRAIN_OK) return s;
    return guard_new([&]() -> Status {
        dtrain_mem_params_t given;
        if (Status s = dtrain::api::take(given, params); s != DTRAIN_OK) return s;
        if (Status s = check_memory_kind(given, "mem_create"); s != DTRAIN_OK) return s;
        if (given.address != nullptr)
            return fail(DTRAIN_ERR_INVALID,
                        "mem_create: the address has to be NULL; memory of the program is for "
                        "dtrain_mem_register()");
        if (given.length == 0) return fail(DTRAIN_ERR_INVALID, "mem_create: the length is 0");
        if (given.mem_type != DTRAIN_MEM_CUDA) return allocate_host(context, given.length, mem_p);
        dtrain::accel::Domain *domain = nullptr;
        Status s = context->domains.find_device(dtrain::api::cuda_plugin, given.device, domain);
        std::shared_ptr<DeviceMemory> made;
        if (s == DTRAIN_OK)
            s = DeviceMemory::allocate(*domain, given.length, is_shared(given), made);
        if (s == DTRAIN_OK)
            s = add_device_memory(context, std::move(made), is_shared(given), mem_p);
        return s == DTRAIN_OK ? s : fail_within(s, "mem_create");
    });
}

void *dtrain_mem_address(const dtrain_mem_t *mem) {
    if (mem == nullptr) return nullptr;
    return const_cast<uint8_t *>(mem->on_device != nullptr ? mem->on_device->begin()
                                                           : mem->registration->begin());
}

dtrain_status_t dtrain_mem_deregister(dtrain_mem_t *mem) {
    if (mem == nullptr) return DTRAIN_OK;
    if (!mem->birth.here()) return DTRAIN_OK;
    return guard([&] {
        dtrain_context *const context = mem->context;
        const Status s = mem->on_device != nullptr
                             ? context->domains.known().remove(*mem->on_device)
                             : context->registry.remove(mem->registration.get());
        if (s != DTRAIN_OK) return s;
        if (mem->registration != nullptr)
            context->agent->locked([&] { mem->registration.reset(); });
        delete mem;
        return Status{DTRAIN_OK};
    });
}
