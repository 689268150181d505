// The plugin's tables, and the only symbol that it exports.
// SPDX-License-Identifier: Apache-2.0
#include "memory.h"
#include "queue.h"

namespace dtrain::cuda {
namespace {

constexpr dtrain_dv_ops_t operations = {
    .struct_size = sizeof(dtrain_dv_ops_t),
    .reserved = 0,
    .list = list,
    .query = query,
    .open = open,
    .close = close,
    .prepare = prepare,
    .classify = classify,
    .alloc = alloc,
    .pin = pin,
    .address = address_of,
    .release = release,
    .queue_own = queue_own,
    .queue_adopt = queue_adopt,
    .queue_free = queue_free,
    .queue_done = queue_done,
    .copy = copy,
    .fill = fill,
    .run = run,
    .signal = signal,
    .hold = hold,
    .call = call,
    .capturing = capturing,
    .export_handle = export_handle,
    .import = import,
    .dmabuf = dmabuf,
    .flush = flush,
};

} // namespace
} // namespace dtrain::cuda

extern "C" const dtrain_dv_plugin_t dtrain_dv_plugin_cuda;
const dtrain_dv_plugin_t dtrain_dv_plugin_cuda = {
    .struct_size = sizeof(dtrain_dv_plugin_t),
    .abi = DTRAIN_DV_ABI,
    .name = "cuda",
    .version = DTRAIN_VERSION,
    .ops = &dtrain::cuda::operations,
};

const dtrain_dv_plugin_t *dtrain_device_query(uint32_t) { return &dtrain_dv_plugin_cuda; }
