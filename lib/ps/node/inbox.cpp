// Posts receives on every transport, and posts them again after each message.
// SPDX-License-Identifier: Apache-2.0
#include "ps/node/inbox.h"

#include <new>
#include <utility>

namespace dtrain::ps {

Inbox::Inbox(engine::Agent &agent, uint64_t tag, uint64_t most_bytes, Take take)
    : agent_(agent), tag_(tag), most_bytes_(most_bytes), take_(std::move(take)) {}

Status Inbox::open() {
    for (auto &device : agent_.devices())
        for (size_t i = 0; i < buffers_per_device; i++) {
            auto buffer = std::make_unique<Buffer>();
            buffer->done = &received;
            buffer->inbox = this;
            buffer->device = device.get();
            buffer->bytes.reset(new (std::nothrow) char[most_bytes_]);
            if (buffer->bytes == nullptr)
                return fail(DTRAIN_ERR_NO_MEMORY, "no memory for receive buffers");
            buffer->registration =
                memory::Registration::make_own(agent_.devices(), buffer->bytes.get(), most_bytes_);
            buffers_.push_back(std::move(buffer));
            if (Status s = listen(*buffers_.back()); s != DTRAIN_OK) return s;
        }
    return DTRAIN_OK;
}

Status Inbox::listen(Buffer &buffer) {
    dtrain_tp_iov_t iov = {.addr = buffer.bytes.get(), .len = most_bytes_, .mr = nullptr};
    Status s =
        buffer.device->ops().recv(buffer.device->dev(), tag_, engine::exact & ~engine::source_mask,
                                  &iov, 1, uint64_t(&buffer));
    if (s != DTRAIN_OK) return s;
    buffer.pending = true;
    pending_++;
    return DTRAIN_OK;
}

void Inbox::close() {
    if (std::exchange(closed_, true)) return;
    for (auto &buffer : buffers_)
        if (buffer->pending) buffer->device->withdraw(uint64_t(buffer.get()));
}

void Inbox::received(engine::Completion *self, const dtrain_tp_done_t &event) {
    Buffer &buffer = *static_cast<Buffer *>(self);
    Inbox &inbox = *buffer.inbox;
    buffer.pending = false;
    inbox.pending_--;
    if (inbox.closed_) return;
    if (event.status == DTRAIN_ERR_CORRUPT) [[unlikely]]
        inbox.damage_.tell(inbox.agent_, engine::tag_source(event.tag), buffer.device->name());
    if (event.status == DTRAIN_OK)
        inbox.take_(engine::tag_source(event.tag), buffer.bytes.get(), event.bytes);
    if (inbox.listen(buffer) != DTRAIN_OK) inbox.deaf_ = true;
}

void Inbox::retry() {
    if (!deaf_ || closed_) return;
    deaf_ = false;
    for (auto &buffer : buffers_)
        if (!buffer->pending && listen(*buffer) != DTRAIN_OK) deaf_ = true;
}

} // namespace dtrain::ps
