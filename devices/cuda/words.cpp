// Words: streams store into them and wait for them.
// SPDX-License-Identifier: Apache-2.0
#include "memory.h"
#include "queue.h"

namespace dtrain::cuda {
namespace {

Status find(const dtrain_dv_queue &queue, const dtrain_dv_mem &mem, uint64_t offset,
            Address &word) {
    if (mem.kind != MemoryKind::pinned || offset % sizeof(uint32_t) != 0 ||
        mem.bytes < sizeof(uint32_t) || offset > mem.bytes - sizeof(uint32_t))
        return fail(queue.device.host, DTRAIN_ERR_INVALID,
                    "cuda: there is no word at offset %lu of %lu bytes of %s memory", offset,
                    mem.bytes, mem.kind == MemoryKind::pinned ? "pinned" : "device");
    word = mem.address + offset;
    return DTRAIN_OK;
}

} // namespace

Status signal(dtrain_dv_queue_t *queue, dtrain_dv_mem_t *mem, uint64_t offset, uint32_t value) {
    Address word = 0;
    if (const Status s = find(*queue, *mem, offset, word); s != DTRAIN_OK) return s;
    return in_context(
        queue->device,
        [&] { return queue->device.driver.write_value(queue->stream, word, value, write_default); },
        "signalling");
}

Status hold(dtrain_dv_queue_t *queue, dtrain_dv_mem_t *mem, uint64_t offset, uint32_t value) {
    Address word = 0;
    if (const Status s = find(*queue, *mem, offset, word); s != DTRAIN_OK) return s;
    return in_context(
        queue->device,
        [&] { return queue->device.driver.wait_value(queue->stream, word, value, wait_at_least); },
        "holding a stream");
}

Status call(dtrain_dv_queue_t *queue, dtrain_dv_call_fn fn, void *arg) {
    return in_context(
        queue->device, [&] { return queue->device.driver.host_function(queue->stream, fn, arg); },
        "calling a function of the host");
}

} // namespace dtrain::cuda
