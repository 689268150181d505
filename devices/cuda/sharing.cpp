// Memory for other processes and for network cards.
// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

namespace dtrain::cuda {

Status export_handle(dtrain_dv_dev_t *dev, const void *address, void *handle, uint64_t *offset) {
    IpcHandle exported{};
    Address base = 0;
    size_t bytes = 0;
    const Status s = in_context(
        *dev,
        [&] {
            Result r = dev->driver.mem_range(&base, &bytes, address_from(address));
            if (r == success) r = dev->driver.ipc_export(&exported, base);
            return r == invalid_value ? Result{not_supported} : r;
        },
        "the memory at %p cannot be passed to other processes (it is of a pool, of virtual memory "
        "management, or not of this GPU)",
        address);
    if (s != DTRAIN_OK) return s;
    std::memcpy(handle, &exported, sizeof exported);
    *offset = address_from(address) - base;
    return DTRAIN_OK;
}

Status import(dtrain_dv_dev_t *dev, const void *handle, uint64_t bytes, dtrain_dv_mem_t **mem_p) {
    IpcHandle exported;
    std::memcpy(&exported, handle, sizeof exported);
    Address address = 0, base = 0;
    size_t length = 0;
    Status s = in_context(
        *dev, [&] { return dev->driver.ipc_open(&address, exported, ipc_lazy_peer_access); },
        "memory of another process on cuda%d", dev->ordinal);
    if (s != DTRAIN_OK) return s;
    s = in_context(
        *dev, [&] { return dev->driver.mem_range(&base, &length, address); },
        "the length of another process's memory");
    if (s == DTRAIN_OK && length != bytes)
        s = fail(dev->host, DTRAIN_ERR_INVALID,
                 "cuda: memory of another process has %zu bytes, not %lu as it says", length,
                 bytes);
    if (s == DTRAIN_OK) return keep({*dev, MemoryKind::imported, address, nullptr, bytes}, mem_p);
    const Current current(*dev);
    (void)dev->driver.ipc_close(address);
    return s;
}

// The driver exports whole pages only.
Status dmabuf(dtrain_dv_dev_t *dev, const void *address, uint64_t bytes, int32_t *fd,
              uint64_t *offset) {
    if (dev->driver.range_handle == nullptr)
        return fail(dev->host, DTRAIN_ERR_UNSUPPORTED,
                    "cuda: this driver exports no dma-buf; version 515 or later does");
    const auto page = uint64_t(sysconf(_SC_PAGESIZE));
    const Address begin = address_from(address) / page * page;
    const Address end = (address_from(address) + bytes + page - 1) / page * page;
    int opened = -1;
    const Status s = in_context(
        *dev,
        [&] { return dev->driver.range_handle(&opened, begin, end - begin, range_dma_buf, 0); },
        "a dma-buf of %lu bytes", bytes);
    if (s != DTRAIN_OK) return s;
    *fd = opened;
    *offset = address_from(address) - begin;
    return DTRAIN_OK;
}

Status flush(dtrain_dv_dev_t *dev) {
    if (dev->driver.flush_writes == nullptr) return dev->check(); // such drivers order them anyway
    return in_context(
        *dev,
        [&] {
            const Result r = dev->driver.flush_writes(flush_current_context, flush_to_owner);
            return r == not_supported ? Result{success} : r; // no network card can write there
        },
        "flushing what network cards have written");
}

} // namespace dtrain::cuda
