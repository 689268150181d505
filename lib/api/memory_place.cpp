// Compares what a program says of its memory with what the accelerators say.
// SPDX-License-Identifier: Apache-2.0
#include "api/memory_place.h"

namespace dtrain::api {
namespace {

const char *kind_text(uint32_t kind) {
    switch (kind) {
    case DTRAIN_DV_PINNED: return "pinned memory of the host";
    case DTRAIN_DV_DEVICE: return "memory of a device";
    default: return "memory of the host";
    }
}

Status check_device(accel::Domains &domains, const dtrain_mem_params_t &params,
                    const accel::Where &where) {
    accel::Domain *wanted = nullptr;
    if (Status s = domains.find_device(cuda_plugin, params.device, wanted); s != DTRAIN_OK)
        return fail_within(s, "register %p", params.address);
    if (where.domain == wanted) return DTRAIN_OK;
    return fail(DTRAIN_ERR_INVALID,
                "register %p: it lies on %s, and params.device is %d; give its own device, or "
                "mem_type DTRAIN_MEM_AUTO",
                params.address, where.domain->name().c_str(), params.device);
}

Status check_host(const dtrain_mem_params_t &params, uint32_t kind) {
    if (params.mem_type == DTRAIN_MEM_CUDA)
        return fail(DTRAIN_ERR_INVALID,
                    "register %p: it is %s, and mem_type says that of a GPU; use DTRAIN_MEM_HOST "
                    "or DTRAIN_MEM_AUTO",
                    params.address, kind_text(kind));
    if (kind == DTRAIN_DV_PINNED && (params.flags & DTRAIN_MEM_SHARED) != 0)
        return fail(DTRAIN_ERR_UNSUPPORTED,
                    "register %p: it is pinned, and DTRAIN_MEM_SHARED would move its pages away "
                    "from the device that uses them; leave the flag out, or use "
                    "dtrain_mem_alloc()",
                    params.address);
    return DTRAIN_OK;
}

} // namespace

Status check_memory_kind(const dtrain_mem_params_t &params, const char *what) {
    if (params.mem_type == DTRAIN_MEM_DMABUF)
        return fail(DTRAIN_ERR_UNSUPPORTED,
                    "%s: DTRAIN_MEM_DMABUF is not supported; pass the memory by its address", what);
    if (params.mem_type > DTRAIN_MEM_DMABUF)
        return fail(DTRAIN_ERR_INVALID, "%s: unknown mem_type %u", what, params.mem_type);
    if ((params.flags & ~uint64_t{DTRAIN_MEM_SHARED}) != 0)
        return fail(DTRAIN_ERR_UNSUPPORTED, "%s: unknown flags 0x%llx", what,
                    static_cast<unsigned long long>(params.flags));
    return DTRAIN_OK;
}

Status find_place(accel::Domains &domains, const dtrain_mem_params_t &params, accel::Where &out) {
    out = {};
    if (params.address == nullptr) return fail(DTRAIN_ERR_INVALID, "register: address is NULL");
    if (params.length == 0) return DTRAIN_OK; // which the host's registration refuses
    if (params.mem_type == DTRAIN_MEM_CUDA) {
        if (Status s = domains.require(cuda_plugin); s != DTRAIN_OK)
            return fail_within(s, "register %p", params.address);
    } else {
        domains.look(); // the program may have begun to use an accelerator
    }
    if (!domains.any()) return DTRAIN_OK;
    if (Status s = domains.find(params.address, params.length, out); s != DTRAIN_OK)
        return fail_within(s, "register");
    if (out.kind == DTRAIN_DV_MANAGED)
        return fail(DTRAIN_ERR_UNSUPPORTED,
                    "register %p: it is managed memory, which moves between the host and its "
                    "devices; pass it to calls without registering it",
                    params.address);
    if (out.domain == nullptr) return check_host(params, out.kind);
    if (params.mem_type == DTRAIN_MEM_HOST)
        return fail(DTRAIN_ERR_INVALID,
                    "register %p: it lies on %s, and mem_type says the host; use DTRAIN_MEM_CUDA "
                    "or DTRAIN_MEM_AUTO",
                    params.address, out.domain->name().c_str());
    return params.mem_type == DTRAIN_MEM_CUDA ? check_device(domains, params, out)
                                              : Status{DTRAIN_OK};
}

} // namespace dtrain::api
