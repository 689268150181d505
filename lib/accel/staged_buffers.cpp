// Copies buffers of accelerators to pinned memory and back.
// SPDX-License-Identifier: Apache-2.0
#include "accel/staged_buffers.h"

#include <algorithm>
#include <utility>

namespace dtrain::accel {

StagedBuffers::~StagedBuffers() {
    release();
    for (Buffer &buffer : buffers_)
        buffer.domain->pinned().give_back(
            std::move(buffer.block),
            [fetched = buffer.fetched, stored = buffer.stored, stream = stream_] {
                return fetched.passed() && stored.passed() &&
                       (stream == nullptr || stream->is_finished());
            });
    stream_.reset(); // before the domains may end
    domains_.release();
}

void StagedBuffers::release() {
    if (stream_ != nullptr) stream_->release();
}

Status StagedBuffers::add(const Where &where, uint64_t bytes, std::vector<Extent> inputs,
                          std::vector<Extent> outputs, uint8_t *&host) {
    Buffer buffer{.domain = where.domain,
                  .device = static_cast<uint8_t *>(where.address),
                  .block = nullptr,
                  .inputs = std::move(inputs),
                  .outputs = std::move(outputs),
                  .memory = where.memory};
    if (Status s = where.domain->pinned().take(bytes, buffer.block); s != DTRAIN_OK)
        return fail_within(s, "accelerator %s", where.domain->name().c_str());
    host = buffer.block->host();
    buffers_.push_back(std::move(buffer));
    return DTRAIN_OK;
}

bool StagedBuffers::has_outputs() const {
    return std::ranges::any_of(buffers_, [](const Buffer &b) { return !b.outputs.empty(); });
}

std::vector<std::span<uint8_t>> StagedBuffers::parts(std::vector<Extent> Buffer::*extents) const {
    std::vector<std::span<uint8_t>> all;
    for (const Buffer &buffer : buffers_)
        for (const Extent &part : buffer.*extents)
            all.emplace_back(buffer.block->host() + part.offset, part.bytes);
    return all;
}

bool StagedBuffers::passed(Batch Buffer::*batch) const {
    return std::ranges::all_of(buffers_, [=](const Buffer &b) { return (b.*batch).passed(); });
}

Status StagedBuffers::check(Batch Buffer::*batch, const char *what) {
    if (stream_ != nullptr)
        if (Status s = stream_->check(); s != DTRAIN_OK) return s;
    for (Buffer &buffer : buffers_)
        if (!(buffer.*batch).passed())
            if (Status s = (buffer.*batch).queue->check((buffer.*batch).posted); s != DTRAIN_OK)
                return explain(s, buffer.domain->name().c_str(), what);
    return DTRAIN_OK;
}

Status StagedBuffers::await(Batch Buffer::*batch, const char *what, int64_t until_ns) {
    for (Buffer &buffer : buffers_)
        if (!(buffer.*batch).passed())
            if (Status s = (buffer.*batch).queue->wait((buffer.*batch).posted, until_ns);
                s != DTRAIN_OK)
                return explain(s, buffer.domain->name().c_str(), what);
    return result(batch, what);
}

Status StagedBuffers::result(Batch Buffer::*batch, const char *what) const {
    for (const Buffer &buffer : buffers_)
        if (Status s = (buffer.*batch).posted.result(); s != DTRAIN_OK)
            return explain(s, buffer.domain->name().c_str(), what);
    return DTRAIN_OK;
}

void StagedBuffers::add_inputs(const Buffer &buffer, std::vector<Copy> &copies) {
    for (const Extent &part : buffer.inputs)
        copies.push_back({.dst = buffer.block->device() + part.offset,
                          .src = buffer.device + part.offset,
                          .bytes = part.bytes});
}

void StagedBuffers::add_outputs(const Buffer &buffer, uint64_t most, std::vector<Copy> &copies) {
    for (const Extent &part : buffer.outputs) {
        const uint64_t bytes = std::min(part.bytes, most);
        most -= bytes;
        if (bytes > 0)
            copies.push_back({.dst = buffer.device + part.offset,
                              .src = buffer.block->device() + part.offset,
                              .bytes = bytes});
    }
}

Status StagedBuffers::begin_fetch() {
    for (Buffer &buffer : buffers_) {
        if (buffer.inputs.empty()) continue;
        std::vector<Copy> copies;
        add_inputs(buffer, copies);
        buffer.fetched.queue = &buffer.domain->to_host();
        if (Status s = buffer.fetched.queue->post(std::move(copies), buffer.fetched.posted);
            s != DTRAIN_OK)
            return explain(s, buffer.domain->name().c_str(), fetching);
    }
    return DTRAIN_OK;
}

Status StagedBuffers::open_on(void *stream) {
    if (stream_ != nullptr && !stream_->is_finished())
        return fail(DTRAIN_ERR_BUSY,
                    "stream: the one of the last run has not gone on yet; synchronize it");
    Domain &domain = *buffers_.front().domain;
    for (const Buffer &buffer : buffers_)
        if (buffer.domain != &domain)
            return fail(DTRAIN_ERR_UNSUPPORTED,
                        "stream: the buffers lie on %s and %s; an operation on a stream needs all "
                        "on the stream's device, or on the host",
                        domain.name().c_str(), buffer.domain->name().c_str());
    return StreamWork::open(domain, stream, stream_);
}

Status StagedBuffers::begin_on(void *stream) {
    const Status s = open_on(stream);
    return s == DTRAIN_OK ? begin_copies() : s;
}

Status StagedBuffers::begin_wait() {
    copies_on_stream_ = false;
    return stream_->enqueue({}, {});
}

Status StagedBuffers::begin_copies() {
    copies_on_stream_ = true;
    std::vector<Copy> inputs, results;
    for (const Buffer &buffer : buffers_) {
        add_inputs(buffer, inputs);
        add_outputs(buffer, UINT64_MAX, results);
    }
    Domain &domain = *buffers_.front().domain;
    for (const Copy &copy : inputs) domain.to_host().count(copy.bytes);
    for (const Copy &copy : results) domain.to_device().count(copy.bytes);
    return stream_->enqueue(inputs, results);
}

Status StagedBuffers::begin_store(uint64_t most) {
    if (stream_ != nullptr && copies_on_stream_) return release(), DTRAIN_OK;
    for (Buffer &buffer : buffers_) {
        std::vector<Copy> copies;
        add_outputs(buffer, most, copies);
        if (copies.empty()) continue;
        buffer.stored.queue = &buffer.domain->to_device();
        if (Status s = buffer.stored.queue->post(std::move(copies), buffer.stored.posted);
            s != DTRAIN_OK)
            return explain(s, buffer.domain->name().c_str(), storing);
    }
    return DTRAIN_OK;
}

bool StagedBuffers::is_stored() {
    if (!passed(&Buffer::stored)) return false;
    release(); // what follows in the stream may see the results
    return stream_ == nullptr || stream_->is_finished();
}

Status StagedBuffers::check_fetch() { return check(&Buffer::fetched, fetching); }
Status StagedBuffers::check_store() { return check(&Buffer::stored, storing); }
Status StagedBuffers::await_fetched(int64_t until_ns) {
    return await(&Buffer::fetched, fetching, until_ns);
}
Status StagedBuffers::await_stored(int64_t until_ns) {
    return await(&Buffer::stored, storing, until_ns);
}

} // namespace dtrain::accel
