// Makes and watches streams; copies and fills.
// SPDX-License-Identifier: Apache-2.0
#include "queue.h"

#include "memory.h"

#include <new>

namespace dtrain::cuda {
namespace {

Status keep(dtrain_dv_dev &device, Stream stream, bool own, dtrain_dv_queue_t **queue_p) {
    auto *queue = new (std::nothrow) dtrain_dv_queue{device, stream, own};
    if (queue == nullptr)
        return fail(device.host, DTRAIN_ERR_NO_MEMORY, "cuda: no memory for a queue");
    *queue_p = queue;
    return DTRAIN_OK;
}

bool is_default(const void *stream) {
    return stream == nullptr || reinterpret_cast<uintptr_t>(stream) == stream_legacy ||
           reinterpret_cast<uintptr_t>(stream) == stream_per_thread;
}

} // namespace

Status queue_own(dtrain_dv_dev_t *dev, uint32_t urgent, dtrain_dv_queue_t **queue_p) {
    Stream stream = nullptr;
    const int priority = urgent != 0 ? dev->urgent : dev->ordinary;
    Status s = in_context(
        *dev, [&] { return dev->driver.stream_create(&stream, stream_non_blocking, priority); },
        "a stream on cuda%d", dev->ordinal);
    if (s != DTRAIN_OK) return s;
    if (s = keep(*dev, stream, true, queue_p); s != DTRAIN_OK) {
        const Current current(*dev);
        (void)dev->driver.stream_destroy(stream);
    }
    return s;
}

Status queue_adopt(dtrain_dv_dev_t *dev, void *stream, dtrain_dv_queue_t **queue_p) {
    Context its = nullptr;
    const auto handle = static_cast<Stream>(stream);
    if (const Status s = dev->check(); s != DTRAIN_OK) return s;
    if (is_default(stream)) return keep(*dev, handle, false, queue_p);
    const Status s = in_context(
        *dev, [&] { return dev->driver.stream_context(handle, &its); }, "the stream %p", stream);
    if (s != DTRAIN_OK) return s;
    if (its != dev->context)
        return fail(dev->host, DTRAIN_ERR_INVALID,
                    "cuda: the stream %p does not belong to the primary context of cuda%d; use a "
                    "stream of the device that holds the buffers",
                    stream, dev->ordinal);
    return keep(*dev, handle, false, queue_p);
}

void queue_free(dtrain_dv_queue_t *queue) {
    if (queue->own && queue->device.here()) {
        const Current current(queue->device);
        (void)queue->device.driver.stream_destroy(queue->stream); // its work continues
    }
    delete queue;
}

Status queue_done(dtrain_dv_queue_t *queue) {
    bool busy = false;
    const Status s = in_context(
        queue->device,
        [&] {
            const Result r = queue->device.driver.stream_query(queue->stream);
            busy = r == not_ready;
            return busy ? Result{success} : r;
        },
        "the state of a stream");
    return s == DTRAIN_OK && busy ? Status{DTRAIN_IN_PROGRESS} : s;
}

Status capturing(dtrain_dv_queue_t *queue) {
    int state = capture_none;
    const Status s = in_context(
        queue->device, [&] { return queue->device.driver.stream_capturing(queue->stream, &state); },
        "the stream cannot be used while another one is captured");
    if (s != DTRAIN_OK || state == capture_none) return s;
    return fail(queue->device.host, DTRAIN_ERR_STATE,
                "cuda: the stream %p is being captured into a graph, in which dtrain's operations "
                "cannot be; call them outside of the capture",
                static_cast<void *>(queue->stream));
}

Status copy(dtrain_dv_queue_t *queue, void *dst, const void *src, uint64_t bytes) {
    if (bytes == 0) return queue->device.check();
    return in_context(
        queue->device,
        [&] {
            return queue->device.driver.copy(address_from(dst), address_from(src), bytes,
                                             queue->stream);
        },
        "copying %lu bytes", bytes);
}

Status fill(dtrain_dv_queue_t *queue, void *dst, uint8_t value, uint64_t bytes) {
    if (bytes == 0) return queue->device.check();
    return in_context(
        queue->device,
        [&] { return queue->device.driver.fill(address_from(dst), value, bytes, queue->stream); },
        "filling %lu bytes", bytes);
}

} // namespace dtrain::cuda
