// Checks a range of memory, and registers it with all devices.
// SPDX-License-Identifier: Apache-2.0
#include "memory/registration.h"

#include <algorithm>
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
                    "register %p: length %llu is zero or exceeds the address space", params.address,
                    static_cast<unsigned long long>(params.length));
    // msync() tells whether all of the range is mapped, without touching it.
    if (msync(reinterpret_cast<void *>(first), end - first, MS_ASYNC) != 0 && errno == ENOMEM)
        return fail(DTRAIN_ERR_INVALID, "register %p, %llu bytes: not all of it is mapped memory",
                    params.address, static_cast<unsigned long long>(params.length));
    return DTRAIN_OK;
}

Status check(const dtrain_mem_params_t &params) {
    if (params.address == nullptr) return fail(DTRAIN_ERR_INVALID, "register: address is NULL");
    if ((params.flags & ~uint64_t{DTRAIN_MEM_SHARED}) != 0)
        return fail(DTRAIN_ERR_UNSUPPORTED, "register: unknown flags 0x%llx",
                    static_cast<unsigned long long>(params.flags));
    return check_host_range(params);
}

// The device that can provide memory which other processes can map; nullptr: no open transport can.
transport::Device *sharing_device(std::span<const std::unique_ptr<transport::Device>> devices) {
    for (auto &device : devices)
        if (device->has(DTRAIN_TP_CAP_WINDOW)) return device.get();
    return nullptr;
}

} // namespace

Status Registration::make(std::span<const std::unique_ptr<transport::Device>> devices,
                          const dtrain_mem_params_t &params, std::unique_ptr<Registration> &out) {
    if (Status s = check(params); s != DTRAIN_OK) return s;
    std::unique_ptr<Registration> made(new Registration(devices, params));
    made->params_.mem_type = DTRAIN_MEM_HOST;
    transport::Device *sharing = sharing_device(devices);
    if ((params.flags & DTRAIN_MEM_SHARED) != 0 && sharing != nullptr)
        if (Status s = SharedPages::adopt(*sharing, params.address, params.length, made->pages_);
            s != DTRAIN_OK)
            return s;
    if (Status s = made->register_everywhere(); s != DTRAIN_OK) return s;
    out = std::move(made);
    return DTRAIN_OK;
}

std::unique_ptr<Registration>
Registration::make_own(std::span<const std::unique_ptr<transport::Device>> devices, void *address,
                       uint64_t bytes) {
    auto writes = [](const auto &device) { return device->has(DTRAIN_TP_CAP_PUT); };
    std::unique_ptr<Registration> made;
    if (std::none_of(devices.begin(), devices.end(), writes)) return made;
    dtrain_mem_params_t params = {};
    params.address = address;
    params.length = bytes;
    (void)make(devices, params, made);
    return made;
}

Status Registration::allocate(std::span<const std::unique_ptr<transport::Device>> devices,
                              uint64_t bytes, std::unique_ptr<Registration> &out) {
    dtrain_mem_params_t params = {};
    params.mem_type = DTRAIN_MEM_HOST;
    params.length = bytes;
    std::unique_ptr<Registration> made(new Registration(devices, params));
    if (transport::Device *sharing = sharing_device(devices); sharing != nullptr) {
        if (Status s = SharedPages::allocate(*sharing, bytes, made->pages_); s != DTRAIN_OK)
            return s;
        made->params_.address = made->pages_->address();
    } else {
        void *memory =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return fail_errno(errno, "allocating %llu bytes",
                              static_cast<unsigned long long>(bytes));
        made->params_.address = memory;
        made->mapped_ = true;
    }
    if (Status s = made->register_everywhere(); s != DTRAIN_OK) return s;
    out = std::move(made);
    return DTRAIN_OK;
}

Status Registration::register_everywhere() {
    for (auto &device : devices_) {
        dtrain_tp_mr_t *handle = nullptr;
        if (device->ops().mr_reg != nullptr)
            if (Status s = device->ops().mr_reg(device->dev(), &params_, &handle); s != DTRAIN_OK)
                return s; // destroying `made` undoes the registrations so far
        handles_.push_back(handle);
    }
    return DTRAIN_OK;
}

Registration::~Registration() {
    for (size_t i = 0; i < handles_.size(); i++)
        if (handles_[i] != nullptr) devices_[i]->ops().mr_dereg(handles_[i]);
    if (mapped_) munmap(params_.address, params_.length);
}

} // namespace dtrain::memory
