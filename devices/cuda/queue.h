// Streams: the library's own, and those of programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "device.h"

struct dtrain_dv_queue {
    dtrain_dv_dev &device;
    dtrain::cuda::Stream stream;
    bool own;
};

namespace dtrain::cuda {

Status queue_own(dtrain_dv_dev_t *dev, uint32_t urgent, dtrain_dv_queue_t **queue_p);
Status queue_adopt(dtrain_dv_dev_t *dev, void *stream, dtrain_dv_queue_t **queue_p);
void queue_free(dtrain_dv_queue_t *queue);
Status queue_done(dtrain_dv_queue_t *queue);
Status capturing(dtrain_dv_queue_t *queue);
Status copy(dtrain_dv_queue_t *queue, void *dst, const void *src, uint64_t bytes);
Status fill(dtrain_dv_queue_t *queue, void *dst, uint8_t value, uint64_t bytes);
Status run(dtrain_dv_queue_t *queue, const dtrain_dv_work_t *work);
Status signal(dtrain_dv_queue_t *queue, dtrain_dv_mem_t *mem, uint64_t offset, uint32_t value);
Status hold(dtrain_dv_queue_t *queue, dtrain_dv_mem_t *mem, uint64_t offset, uint32_t value);
Status call(dtrain_dv_queue_t *queue, dtrain_dv_call_fn fn, void *arg);

} // namespace dtrain::cuda
