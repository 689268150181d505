// The wire over libfabric: completions that its queues report.
// SPDX-License-Identifier: Apache-2.0
#include "ofi/wire.h"

#include <algorithm>
#include <rdma/fi_errno.h>

namespace dtrain::ofi {
namespace {

// Bounds the work, so that other connections get their turn.
constexpr size_t batch = 16, max_batches = 8;
constexpr uint32_t complete_every = 1024; // calls of progress(), while nothing is expected
constexpr uint32_t receive_every = 8;     // calls of progress() that have taken completions

} // namespace

bool Wire::progress() {
    cache_.look();
    // Over TCP, each check of an empty queue is a system call. So completed sends are reported
    // before the other queue is checked.
    if ((under_way_ || idle_++ % complete_every == 0) && complete() && ++told_ % receive_every)
        return !broken_;
    const bool received_all = receive();
    if (!answers_.empty()) flush_answers();
    while (Move *move = waiting_.front())
        if (!advance(move)) break;
    if (failed_) tell_failed();
    if (broken_links_ && received_all) tell_broken();
    return !broken_;
}

// Processes what has arrived. False: there may be more.
bool Wire::receive() {
    fi_cq_data_entry entries[batch];
    for (size_t i = 0; i < max_batches; i++) {
        const ssize_t n = fi_cq_read(fabric_.rx.get(), entries, batch);
        for (ssize_t k = 0; k < n; k++) on_received(entries[k]);
        if (n == -FI_EAVAIL)
            on_error(fabric_.rx.get());
        else if (n == -FI_EAGAIN)
            return true;
        else if (n < 0)
            return broken_ = true;
        // Checking again would cost more than it finds. But when a broken link is reported,
        // everything that arrived from it must have been reported.
        if (n > 0 && n < ssize_t(batch) && !broken_links_) break;
    }
    return false;
}

void Wire::on_received(const fi_cq_data_entry &entry) {
    if (entry.flags & FI_REMOTE_CQ_DATA && entry.flags & (FI_RMA | FI_REMOTE_WRITE))
        return on_immediate(entry.data);
    if (entry.flags & FI_RECV && entry.len)
        on_packet(static_cast<const uint8_t *>(entry.buf), entry.len);
    auto *buffer = reinterpret_cast<Buffer *>(static_cast<Context *>(entry.op_context));
    if (buffer) on_packet_of(*buffer, entry);
}

// Libfabric's own RDM over TCP says that a buffer is used up when the last packet in it has
// arrived. Those before it, from other peers, may still be arriving, and would be written into the
// packets that come next. So it is used again when all have arrived.
void Wire::on_packet_of(Buffer &buffer, const fi_cq_data_entry &entry) {
    buffer.arrived += entry.len;
    if (entry.flags & FI_MULTI_RECV) {
        const uint8_t *end = static_cast<const uint8_t *>(entry.buf) + entry.len;
        buffer.all = counts_bytes_ ? size_t(end - buffer.bytes.get()) : buffer.arrived;
        buffer.used_up = true;
        posted_--;
    }
    if (!buffer.used_up || buffer.arrived != buffer.all) return;
    spare_buffers_.push_back(&buffer);
    if (!post_buffers()) broken_ = true;
}

void Wire::on_packet(const uint8_t *bytes, size_t len) {
    switch (PacketKind(bytes[0])) {
    case PacketKind::announce: return on_announce(bytes, len);
    case PacketKind::grant: return on_grant(bytes, len);
    case PacketKind::failed: return on_failed(bytes, len);
    default: return protocol_.on_packet(bytes, len);
    }
}

// Takes back completed sends. True: memory of operations was among them.
bool Wire::complete() {
    fi_cq_data_entry entries[batch];
    bool told = false;
    for (size_t i = 0; i < max_batches; i++) {
        const ssize_t n = fi_cq_read(fabric_.tx.get(), entries, batch);
        for (ssize_t k = 0; k < n; k++) {
            auto *context = static_cast<Context *>(entries[k].op_context);
            if (!context) continue;
            told |= context->kind != Context::Kind::packet;
            on_completed(context, 0);
        }
        if (n == -FI_EAVAIL)
            on_error(fabric_.tx.get());
        else if (n < 0)
            broken_ |= n != -FI_EAGAIN;
        if (n < ssize_t(batch) && n != -FI_EAVAIL) break;
    }
    return told;
}

void Wire::on_completed(Context *context, int error) {
    ofi::Link *link = context->link;
    if (error) break_link(link, error);
    if (context->kind == Context::Kind::chunk) {
        on_chunk(static_cast<Chunk *>(context), error);
    } else {
        auto *packet = static_cast<Packet *>(context);
        if (packet->payload) protocol_.on_sent(std::exchange(packet->payload, nullptr), !error);
        packet->copy.reset();
        free_packets_.push_back(packet);
        unsent_--;
    }
    back(link);
}

void Wire::on_error(fid_cq *queue) {
    fi_cq_err_entry entry{};
    if (fi_cq_readerr(queue, &entry, 0) < 1) return;
    auto *context = static_cast<Context *>(entry.op_context);
    const int error = entry.err < 0 ? -entry.err : entry.err ? entry.err : FI_EIO;
    if (queue == fabric_.tx.get()) {
        if (context) on_completed(context, error);
    } else if (context && context->kind == Context::Kind::buffer && entry.flags & FI_RECV) {
        // A message that did not fit, or a buffer that was given up: nothing of this library is
        // lost.
        host_.log(DTRAIN_LOG_WARN, "ofi: a receive failed: %s", fi_strerror(error));
        if (error == FI_ECANCELED) return;
        posted_--;
        if (!post(static_cast<Buffer *>(context))) broken_ = true;
    }
}

void Wire::break_link(ofi::Link *link, int error) {
    const bool lacks = error == FI_ENOMEM;
    break_link(link, rdm::Fault{.why = lacks ? "out of memory" : fi_strerror(error),
                                .status = lacks ? DTRAIN_ERR_NO_MEMORY : DTRAIN_ERR_PEER});
}

void Wire::break_link(ofi::Link *link, const rdm::Fault &fault) {
    if (link->broken.why) return;
    link->broken = fault;
    broken_links_ = true;
}

// Called only when everything that arrived before has been processed.
void Wire::tell_broken() {
    broken_links_ = false;
    for (ofi::Link *link = links_.front(); link; link = links_.next(link))
        if (link->broken.why && !std::exchange(link->told, true))
            protocol_.on_broken(link, link->broken);
}

} // namespace dtrain::ofi
