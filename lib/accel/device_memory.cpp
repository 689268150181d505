// Allocates and frees memory of accelerators, and checks whether other processes can import it.
// SPDX-License-Identifier: Apache-2.0
#include "accel/device_memory.h"

#include <string>
#include <vector>

namespace dtrain::accel {

Status DeviceMemory::check_export() const {
    const dtrain_dv_ops_t &ops = domain_.ops();
    const char *name = domain_.name().c_str();
    if ((domain_.attr().caps & DTRAIN_DV_CAP_EXPORT) == 0 || ops.export_handle == nullptr)
        return fail(DTRAIN_ERR_UNSUPPORTED,
                    "accelerator %s: its memory cannot be passed to other processes; leave "
                    "DTRAIN_MEM_SHARED out",
                    name);
    std::vector<uint8_t> handle(domain_.attr().handle_len);
    uint64_t offset = 0;
    set_error_text("");
    const Status s = ops.export_handle(domain_.dev(), device_, handle.data(), &offset);
    if (s != DTRAIN_ERR_UNSUPPORTED)
        return s == DTRAIN_OK ? s : explain(s, name, "exporting memory");
    const std::string why = error_text();
    return fail(s,
                "accelerator %s: %s; leave DTRAIN_MEM_SHARED out, or use memory of "
                "dtrain_mem_create()",
                name, why.c_str());
}

Status DeviceMemory::adopt(const Where &where, const void *address, uint64_t bytes, bool shared,
                           std::shared_ptr<DeviceMemory> &out) {
    std::shared_ptr<DeviceMemory> made(
        new DeviceMemory(*where.domain, address, where.address, bytes));
    if (shared)
        if (Status s = made->check_export(); s != DTRAIN_OK) return s;
    out = std::move(made);
    return DTRAIN_OK;
}

Status DeviceMemory::allocate(Domain &domain, uint64_t bytes, bool shared,
                              std::shared_ptr<DeviceMemory> &out) {
    std::shared_ptr<DeviceMemory> made(new DeviceMemory(domain, nullptr, nullptr, bytes));
    set_error_text("");
    const Status s = domain.ops().alloc(domain.dev(), bytes,
                                        shared ? uint64_t{DTRAIN_DV_EXPORTABLE} : 0, &made->own_);
    if (s != DTRAIN_OK) {
        made->own_ = nullptr;
        explain(s, domain.name().c_str(), "allocating memory");
        if (s != DTRAIN_ERR_NO_MEMORY) return s;
        const std::string why = error_text();
        return fail(s,
                    "%s; all programs on the device share its %llu bytes, of which frameworks may "
                    "keep free ones: ask for less, or have some freed",
                    why.c_str(), static_cast<unsigned long long>(domain.attr().memory_bytes));
    }
    made->device_ = static_cast<uint8_t *>(domain.ops().address(made->own_));
    made->begin_ = made->device_;
    if (shared)
        if (Status failed = made->check_export(); failed != DTRAIN_OK) return failed;
    out = std::move(made);
    return DTRAIN_OK;
}

DeviceMemory::~DeviceMemory() {
    if (own_ == nullptr) return;
    domain_.drain();
    domain_.ops().release(own_);
}

} // namespace dtrain::accel
