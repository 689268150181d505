// Allocates and frees memory of accelerators, and checks whether other processes can import it.
// SPDX-License-Identifier: Apache-2.0
#include "accel/device_memory.h"

#include "accel/postponed.h"

#include <atomic>
#include <string>

namespace dtrain::accel {

Status DeviceMemory::share(uint64_t allocation_bytes) {
    static std::atomic<uint64_t> last_serial{0};
    const dtrain_dv_ops_t &ops = domain_.ops();
    const char *name = domain_.name().c_str();
    SharedAllocation made;
    if ((domain_.attr().caps & DTRAIN_DV_CAP_EXPORT) == 0 || ops.export_handle == nullptr ||
        domain_.attr().handle_len > sizeof made.handle)
        return fail(DTRAIN_ERR_UNSUPPORTED,
                    "accelerator %s: its memory cannot be passed to other processes; leave "
                    "DTRAIN_MEM_SHARED out",
                    name);
    set_error_text("");
    const Status s = ops.export_handle(domain_.dev(), device_, made.handle, &made.offset);
    if (s == DTRAIN_OK) {
        made.bytes = allocation_bytes;
        made.serial = last_serial.fetch_add(1) + 1;
        shared_ = made;
        return s;
    }
    if (s != DTRAIN_ERR_UNSUPPORTED) return explain(s, name, "exporting memory");
    const std::string why = error_text();
    return fail(s,
                "accelerator %s: %s; leave DTRAIN_MEM_SHARED out, or use memory of "
                "dtrain_mem_create()",
                name, why.c_str());
}

std::shared_ptr<DeviceMemory> DeviceMemory::adopt(const Where &where, const void *address,
                                                  uint64_t bytes) {
    return std::shared_ptr<DeviceMemory>(
        new DeviceMemory(*where.domain, address, where.address, bytes));
}

Status DeviceMemory::allocate(Domain &domain, uint64_t bytes, bool exportable,
                              std::shared_ptr<DeviceMemory> &out) {
    std::shared_ptr<DeviceMemory> made(new DeviceMemory(domain, nullptr, nullptr, bytes));
    Postponed::make_all(); // there may be little free memory
    set_error_text("");
    const Status s = domain.ops().alloc(
        domain.dev(), bytes, exportable ? uint64_t{DTRAIN_DV_EXPORTABLE} : 0, &made->own_);
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
    out = std::move(made);
    return DTRAIN_OK;
}

DeviceMemory::~DeviceMemory() {
    if (own_ == nullptr) return;
    domain_.drain();
    domain_.retire(own_);
}

} // namespace dtrain::accel
