// Asks the driver what an address is.
// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

namespace dtrain::cuda {
namespace {

// What the driver says of an address, as it writes it.
struct Facts {
    unsigned type = 0; // 0: the driver does not know the address
    int managed = 0, ipc_capable = 0;
    int ordinal = -1;
    unsigned long long id = 0;
    Address start = 0, device = 0;
    size_t size = 0;
};

Result ask(const Driver &driver, Address address, Facts &facts) {
    PointerAttribute wanted[] = {memory_type, is_managed, device_ordinal, buffer_id,
                                 range_start, range_size, device_pointer, is_ipc_capable};
    void *into[] = {&facts.type,  &facts.managed, &facts.ordinal, &facts.id,
                    &facts.start, &facts.size,    &facts.device,  &facts.ipc_capable};
    static_assert(sizeof wanted / sizeof *wanted == sizeof into / sizeof *into);
    return driver.pointer_attributes(sizeof wanted / sizeof *wanted, wanted, into, address);
}

} // namespace

Status classify(const Host *host, const void *address, uint64_t bytes, dtrain_dv_range_t *range) {
    const Driver *driver = nullptr;
    if (const Status s = open_driver(*host, driver); s != DTRAIN_OK) return s;
    dtrain_dv_range_t full{};
    full.kind = DTRAIN_DV_HOST;
    full.ordinal = -1;
    Facts facts;
    const Result r = ask(*driver, address_from(address), facts);
    if (r != success && r != invalid_value) // which some drivers say of host memory
        return driver->fail(*host, r, "cuPointerGetAttributes");
    if (r == success && facts.type != 0 && facts.size != 0) {
        const uint64_t offset = address_from(address) - facts.start;
        // Pinned memory may have another address on the device than on the host.
        if (offset > facts.size || bytes > facts.size - offset)
            return fail(*host, DTRAIN_ERR_INVALID,
                        "cuda: %lu bytes at %p end outside of the allocation of %zu bytes in which "
                        "they begin",
                        bytes, address, facts.size);
        const bool device = facts.type == memory_device;
        full.kind = facts.managed != 0 ? DTRAIN_DV_MANAGED
                    : device           ? DTRAIN_DV_DEVICE
                                       : DTRAIN_DV_PINNED;
        full.address = facts.device != 0 ? facts.device : address_from(address);
        full.base = facts.start;
        full.length = facts.size;
        full.id = facts.id;
        full.ordinal = full.kind == DTRAIN_DV_DEVICE ? facts.ordinal : -1;
        if (full.kind == DTRAIN_DV_DEVICE && facts.ipc_capable != 0)
            full.flags |= DTRAIN_DV_RANGE_EXPORT;
        if (full.kind == DTRAIN_DV_DEVICE && driver->range_handle != nullptr)
            full.flags |= DTRAIN_DV_RANGE_DMABUF;
    }
    give(full, *range);
    return DTRAIN_OK;
}

} // namespace dtrain::cuda
