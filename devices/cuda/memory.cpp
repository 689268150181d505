// Allocates, pins and frees.
// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <new>

namespace dtrain::cuda {
namespace {

void free_of_driver(const dtrain_dv_mem &mem) {
    if (!mem.device.here()) return;
    const Driver &driver = mem.device.driver;
    const Current current(mem.device);
    switch (mem.kind) {
    case MemoryKind::allocated: (void)driver.mem_free(mem.address); break;
    case MemoryKind::pinned: (void)driver.host_unregister(mem.host); break;
    case MemoryKind::imported: (void)driver.ipc_close(mem.address); break;
    }
}

} // namespace

Status keep(dtrain_dv_mem memory, dtrain_dv_mem_t **mem_p) {
    auto *mem = new (std::nothrow) dtrain_dv_mem(memory);
    if (mem == nullptr) {
        free_of_driver(memory);
        return fail(memory.device.host, DTRAIN_ERR_NO_MEMORY, "cuda: no memory for a handle");
    }
    *mem_p = mem;
    return DTRAIN_OK;
}

Status alloc(dtrain_dv_dev_t *dev, uint64_t bytes, uint64_t flags, dtrain_dv_mem_t **mem_p) {
    if (bytes == 0 || (flags & ~uint64_t{DTRAIN_DV_EXPORTABLE}) != 0)
        return fail(dev->host, DTRAIN_ERR_INVALID, "cuda: an allocation of %lu bytes, flags %lx",
                    bytes, flags);
    Address address = 0; // all that cuMemAlloc() makes can be exported
    const Status s = in_context(
        *dev, [&] { return dev->driver.mem_alloc(&address, bytes); }, "%lu bytes on cuda%d", bytes,
        dev->ordinal);
    if (s != DTRAIN_OK) return s;
    return keep({*dev, MemoryKind::allocated, address, nullptr, bytes}, mem_p);
}

Status pin(dtrain_dv_dev_t *dev, void *address, uint64_t bytes, dtrain_dv_mem_t **mem_p) {
    if (address == nullptr || bytes == 0)
        return fail(dev->host, DTRAIN_ERR_INVALID, "cuda: nothing to pin");
    const Driver &driver = dev->driver;
    Status s = in_context(
        *dev,
        [&] { return driver.host_register(address, bytes, register_portable | register_map); },
        "pinning %lu bytes of host memory", bytes);
    if (s != DTRAIN_OK) return s;
    Address mapped = 0;
    s = in_context(
        *dev, [&] { return driver.host_address(&mapped, address, 0); },
        "the address of pinned memory on cuda%d", dev->ordinal);
    if (s == DTRAIN_OK) return keep({*dev, MemoryKind::pinned, mapped, address, bytes}, mem_p);
    free_of_driver({*dev, MemoryKind::pinned, 0, address, bytes});
    return s;
}

void *address_of(dtrain_dv_mem_t *mem) { return pointer_from(mem->address); }

void release(dtrain_dv_mem_t *mem) {
    free_of_driver(*mem);
    delete mem;
}

} // namespace dtrain::cuda
