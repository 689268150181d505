// SPDX-License-Identifier: Apache-2.0
#include "memory/registration.h"

#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

namespace dtrain::memory {
namespace {

Status check_host_range(const dtrain_mem_params_t &params) {
    auto begin = reinterpret_cast<uintptr_t>(params.address);
    auto page = uintptr_t(sysconf(_SC_PAGESIZE));
    uintptr_t first = begin & ~(page - 1), end = 0;
    if (params.length == 0 || __builtin_add_overflow(begin, uintptr_t(params.length), &end))
        return fail(DTRAIN_ERR_INVALID,
                    "register %p: length %llu is zero or runs over the end of memory",
                    params.address, static_cast<unsigned long long>(params.length));
    // msync() tells, without touching anything, whether all of it is mapped.
    if (msync(reinterpret_cast<void *>(first), end - first, MS_ASYNC) != 0 && errno == ENOMEM)
        return fail(DTRAIN_ERR_INVALID, "register %p, %llu bytes: not all of it is mapped memory",
                    params.address, static_cast<unsigned long long>(params.length));
    return DTRAIN_OK;
}

Status check(const dtrain_mem_params_t &params) {
    switch (params.mem_type) {
    case DTRAIN_MEM_AUTO:
    case DTRAIN_MEM_HOST: break;
    case DTRAIN_MEM_CUDA:
    case DTRAIN_MEM_DMABUF:
        return fail(DTRAIN_ERR_UNSUPPORTED,
                    "register %p: no open transport takes device memory; copy it to the host",
                    params.address);
    default:
        return fail(DTRAIN_ERR_INVALID, "register %p: unknown mem_type %u", params.address,
                    params.mem_type);
    }
    if (params.address == nullptr) return fail(DTRAIN_ERR_INVALID, "register: address is NULL");
    if (params.flags != 0)
        return fail(DTRAIN_ERR_UNSUPPORTED, "register: unknown flags 0x%llx",
                    static_cast<unsigned long long>(params.flags));
    return check_host_range(params);
}

} // namespace

Status Registration::make(std::span<const std::unique_ptr<transport::Device>> devices,
                          const dtrain_mem_params_t &params, std::unique_ptr<Registration> &out) {
    if (Status s = check(params); s != DTRAIN_OK) return s;
    std::unique_ptr<Registration> made(new Registration(devices, params));
    made->params_.mem_type = DTRAIN_MEM_HOST;
    for (auto &device : devices) {
        dtrain_tp_mr_t *handle = nullptr;
        if (device->ops().mr_reg != nullptr)
            if (Status s = device->ops().mr_reg(device->dev(), &made->params_, &handle);
                s != DTRAIN_OK)
                return s; // those made so far go with `made`
        made->handles_.push_back(handle);
    }
    out = std::move(made);
    return DTRAIN_OK;
}

Registration::~Registration() {
    for (size_t i = 0; i < handles_.size(); i++)
        if (handles_[i] != nullptr) devices_[i]->ops().mr_dereg(handles_[i]);
}

} // namespace dtrain::memory
