// Reduces buckets in place or packed.
// SPDX-License-Identifier: Apache-2.0
#include "gradients/reducer.h"

#include "device/kernels.h"

#include <algorithm>
#include <cstring>

namespace dtrain::gradients {

Reducer::Reducer(collectives::Communicator &communicator, memory::Registry &registry,
                 uint64_t bucket_bytes, int64_t timeout_ns, const std::atomic<int64_t> &due_ns)
    : communicator_(communicator), registry_(registry), bucket_bytes_(bucket_bytes),
      timeout_ns_(timeout_ns), due_ns_(due_ns) {}

Reducer::~Reducer() {
    if (memory_ == nullptr) return;
    (void)registry_.remove(memory_.get()); // its only user was reduce(), which has returned
    communicator_.session().agent().locked([&] { memory_.reset(); });
}

Status Reducer::reduce(const Bucket &bucket, std::span<const Buffers> buffers) {
    bool needs_memory = bucket.items.size() > 1 || bucket.items[0].id == 0;
    if (needs_memory)
        if (Status s = prepare_memory(); s != DTRAIN_OK) return s;
    return bucket.items.size() > 1 ? reduce_packed(bucket, buffers)
                                   : reduce_alone(bucket, buffers[0]);
}

Status Reducer::prepare_memory() {
    if (memory_ != nullptr) return DTRAIN_OK;
    engine::Agent &agent = communicator_.session().agent();
    Status s = DTRAIN_OK;
    agent.locked(
        [&] { s = memory::Registration::allocate(agent.devices(), bucket_bytes_, memory_); });
    if (s != DTRAIN_OK) return fail_within(s, "gradients: cannot allocate a bucket");
    registry_.add(memory_.get());
    bytes_ = const_cast<uint8_t *>(memory_->begin()); // allocated by this object, so it may write
    return DTRAIN_OK;
}

Status Reducer::allreduce(const void *send, void *recv, uint64_t bytes, const Bucket &bucket) {
    collectives::Call call;
    call.kind = collectives::Kind::allreduce;
    call.send = send;
    call.recv = recv;
    call.count = bytes / device::dtype_size(bucket.dtype);
    call.dtype = bucket.dtype;
    call.op = bucket.op;
    engine::Request request;
    Status s = communicator_.post(call, {.request = &request,
                                         .timeout_ns = timeout_ns_,
                                         .due_ns = &due_ns_,
                                         .blocking = true,
                                         .registry = &registry_});
    if (s != DTRAIN_OK) return s;
    if (request.outcome().status != DTRAIN_OK) set_error_text(request.error());
    return request.outcome().status;
}

uint8_t *Reducer::zeros(uint64_t bytes) {
    std::memset(bytes_, 0, bytes);
    return bytes_;
}

// A rank that contributes zeros has memory for one bucket only, whatever the others submitted.
Status Reducer::reduce_alone(const Bucket &bucket, const Buffers &buffers) {
    uint64_t piece = bucket.in_pieces ? bucket_bytes_ : bucket.bytes;
    for (uint64_t at = 0; at < bucket.bytes; at += piece) {
        uint64_t bytes = std::min(piece, bucket.bytes - at);
        bool here = bucket.items[0].id != 0;
        const void *send = here ? static_cast<const uint8_t *>(buffers.send) + at : zeros(bytes);
        void *recv = here ? static_cast<uint8_t *>(buffers.recv) + at : bytes_;
        if (Status s = allreduce(send, recv, bytes, bucket); s != DTRAIN_OK) return s;
    }
    return DTRAIN_OK;
}

Status Reducer::reduce_packed(const Bucket &bucket, std::span<const Buffers> buffers) {
    uint64_t at = 0;
    for (size_t i = 0; i < buffers.size(); at += bucket.items[i].bytes, i++)
        if (bucket.items[i].id != 0)
            device::copy(bytes_ + at, buffers[i].send, bucket.items[i].bytes);
        else
            std::memset(bytes_ + at, 0, bucket.items[i].bytes);
    if (Status s = allreduce(bytes_, bytes_, bucket.bytes, bucket); s != DTRAIN_OK) return s;
    at = 0;
    for (size_t i = 0; i < buffers.size(); at += bucket.items[i].bytes, i++)
        if (bucket.items[i].id != 0)
            device::copy(buffers[i].recv, bytes_ + at, bucket.items[i].bytes);
    return DTRAIN_OK;
}

} // namespace dtrain::gradients
