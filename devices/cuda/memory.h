// Memory of a GPU, pinned host memory, and memory of other processes.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "device.h"

namespace dtrain::cuda {
enum class MemoryKind { allocated, pinned, imported };
}

struct dtrain_dv_mem {
    dtrain_dv_dev &device;
    dtrain::cuda::MemoryKind kind;
    dtrain::cuda::Address address; // the device's
    void *host;                    // of pinned memory
    uint64_t bytes;
};

namespace dtrain::cuda {

Status classify(const Host *host, const void *address, uint64_t bytes, dtrain_dv_range_t *range);
Status alloc(dtrain_dv_dev_t *dev, uint64_t bytes, uint64_t flags, dtrain_dv_mem_t **mem_p);
Status pin(dtrain_dv_dev_t *dev, void *address, uint64_t bytes, dtrain_dv_mem_t **mem_p);
void *address_of(dtrain_dv_mem_t *mem);
void release(dtrain_dv_mem_t *mem);
Status export_handle(dtrain_dv_dev_t *dev, const void *address, void *handle, uint64_t *offset);
Status import(dtrain_dv_dev_t *dev, const void *handle, uint64_t bytes, dtrain_dv_mem_t **mem_p);
Status dmabuf(dtrain_dv_dev_t *dev, const void *address, uint64_t bytes, int32_t *fd,
              uint64_t *offset);
Status flush(dtrain_dv_dev_t *dev);

inline Address address_from(const void *pointer) { return reinterpret_cast<Address>(pointer); }
inline void *pointer_from(Address address) { return reinterpret_cast<void *>(address); }

// Wraps what the driver has given; frees it again if there is no memory for that.
Status keep(dtrain_dv_mem memory, dtrain_dv_mem_t **mem_p);

} // namespace dtrain::cuda
