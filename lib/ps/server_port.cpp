// SPDX-License-Identifier: Apache-2.0
#include "ps/server_port.h"

#include "ps/network_wire.h"

#include <cstring>
#include <new>

namespace dtrain::ps {
namespace {

constexpr uint64_t buffer_bytes = sizeof(RequestHeader) + chunk_bytes;

} // namespace

ServerPort::ServerPort(engine::Agent &agent, engine::Mesh &mesh, Server &server, uint32_t self,
                       uint32_t workers)
    : agent_(agent), mesh_(mesh), server_(server), self_(self), workers_(workers) {}

Status ServerPort::open() {
    for (auto &device : agent_.devices())
        for (size_t i = 0; i < buffers_per_device; i++) {
            auto buffer = std::make_unique<Buffer>();
            buffer->done = &received;
            buffer->port = this;
            buffer->device = device.get();
            buffer->bytes.reset(new (std::nothrow) uint8_t[buffer_bytes]);
            if (buffer->bytes == nullptr)
                return fail(DTRAIN_ERR_NO_MEMORY, "no memory for a server's receive buffers");
            buffers_.push_back(std::move(buffer));
            if (Status s = listen(*buffers_.back()); s != DTRAIN_OK) return s;
        }
    return DTRAIN_OK;
}

Status ServerPort::listen(Buffer &buffer) {
    dtrain_tp_iov_t iov = {.addr = buffer.bytes.get(), .len = buffer_bytes, .mr = nullptr};
    Status s =
        buffer.device->ops().recv(buffer.device->dev(), request_tag(0),
                                  engine::exact & ~engine::source_mask, &iov, 1, uint64_t(&buffer));
    if (s != DTRAIN_OK) return s;
    buffer.pending = true;
    pending_++;
    return DTRAIN_OK;
}

void ServerPort::close() {
    closed_ = true;
    for (auto &buffer : buffers_)
        if (buffer->pending)
            buffer->device->ops().cancel(buffer->device->dev(), uint64_t(buffer.get()));
    for (Answer *answer : held_back_) spare_.splice(spare_.end(), answers_, answer->place);
    held_back_.clear();
    for (Answer &answer : answers_) mesh_.cancel(answer.response.worker, &answer);
}

void ServerPort::received(engine::Completion *self, const dtrain_tp_done_t &event) {
    Buffer &buffer = *static_cast<Buffer *>(self);
    ServerPort &port = *buffer.port;
    buffer.pending = false;
    port.pending_--;
    if (port.closed_) return;
    uint32_t worker = engine::tag_source(event.tag);
    if (event.status == DTRAIN_OK && event.bytes >= sizeof(RequestHeader) &&
        worker < port.workers_) {
        RequestHeader header;
        std::memcpy(&header, buffer.bytes.get(), sizeof header);
        port.server_.on_request(worker, header, buffer.bytes.get() + sizeof header,
                                event.bytes - sizeof header, port.responses_);
    }
    if (port.listen(buffer) != DTRAIN_OK) port.deaf_ = true;
}

int ServerPort::send() {
    int sent = int(responses_.size());
    for (Response &response : responses_) {
        if (spare_.empty()) spare_.emplace_back();
        answers_.splice(answers_.end(), spare_, spare_.begin());
        Answer &answer = answers_.back();
        answer.place = std::prev(answers_.end());
        answer.done = &answered;
        answer.port = this;
        answer.response = std::move(response);
        if (!post(answer)) held_back_.push_back(&answer);
    }
    responses_.clear();
    return sent;
}

int ServerPort::retry() {
    if (deaf_ && !closed_) {
        deaf_ = false;
        for (auto &buffer : buffers_)
            if (!buffer->pending && listen(*buffer) != DTRAIN_OK) deaf_ = true;
    }
    if (held_back_.empty()) return 0;
    auto left = held_back_.begin();
    for (Answer *answer : held_back_)
        if (!post(*answer)) *left++ = answer;
    int done = int(held_back_.end() - left);
    held_back_.erase(left, held_back_.end());
    return done;
}

bool ServerPort::post(Answer &answer) {
    Response &r = answer.response;
    dtrain_tp_iov_t iov[] = {{.addr = &r.header, .len = sizeof r.header, .mr = nullptr},
                             {.addr = const_cast<void *>(r.payload), // is only read
                              .len = r.bytes,
                              .mr = nullptr}};
    Status s = mesh_.send(r.worker, answer_tag(self_, r.header.table, r.header.sequence), iov,
                          r.bytes > 0 ? 2 : 1, &answer);
    if (s == DTRAIN_ERR_BUSY) return false;
    if (s == DTRAIN_OK) {
        pending_++;
        return true;
    }
    // The worker will ask again, or is lost.
    r.hold.reset();
    spare_.splice(spare_.end(), answers_, answer.place);
    return true;
}

void ServerPort::answered(engine::Completion *self, const dtrain_tp_done_t &) {
    Answer &answer = *static_cast<Answer *>(self);
    ServerPort &port = *answer.port;
    port.pending_--;
    answer.response.hold.reset();
    port.spare_.splice(port.spare_.end(), port.answers_, answer.place);
}

} // namespace dtrain::ps
