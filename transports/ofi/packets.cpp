// The wire over libfabric: packets being sent.
// SPDX-License-Identifier: Apache-2.0
#include "ofi/wire.h"

#include <cstring>
#include <rdma/fi_errno.h>

namespace dtrain::ofi {
namespace {

constexpr size_t most_injected = 8 << 10;

} // namespace

Sent Wire::send(rdm::Link *link, const void *head, size_t len, Operation *payload) {
    if (!flush_answers()) return Sent::busy; // they are sent first
    return send_packet(static_cast<ofi::Link *>(link), head, len, payload);
}

Sent Wire::send_packet(ofi::Link *link, const void *head, size_t len, Operation *payload) {
    if (link->broken.why) return Sent::broken;
    const size_t total = len + (payload ? payload->memory.remaining() : 0);
    if (total <= inject_limit_ && !ends_) {
        uint8_t bytes[most_injected];
        if (total <= sizeof bytes) {
            memcpy(bytes, head, len);
            if (payload) payload->memory.peek(bytes + len, total - len);
            const auto error =
                int(fi_inject(fabric_.endpoint.get(), bytes, total, link->peer->number));
            if (error) return refused(link, error);
            if (payload) traffic_.copied += total - len;
            return Sent::now;
        }
    }
    if (free_packets_.empty()) return Sent::busy;
    Packet *packet = free_packets_.back();
    packet->link = link;
    packet->kind = Context::Kind::packet;
    packet->payload = nullptr;
    memcpy(packet->bytes, head, len);
    if (total > packet_size_) return send_payload(link, packet, len, payload);
    if (payload) payload->memory.peek(packet->bytes + len, total - len);
    const auto error = int(fi_send(fabric_.endpoint.get(), packet->bytes, total, packet->descriptor,
                                   link->peer->number, &packet->libfabric));
    if (error) return refused(link, error);
    if (payload) traffic_.copied += total - len;
    free_packets_.pop_back();
    unsent_++;
    lend(link);
    return Sent::now;
}

// Sends a payload without copying it.
Sent Wire::send_payload(ofi::Link *link, Packet *packet, size_t len, Operation *payload) {
    iovec pieces[tp::max_iov + 1];
    pieces[0] = {packet->bytes, len};
    int n = payload->memory.describe(pieces + 1, payload->memory.remaining());
    const bool copies = size_t(n) + 1 > fabric_.info->tx_attr->iov_limit;
    if (copies) {
        const uint64_t length = payload->memory.remaining();
        packet->copy.reset(new (std::nothrow) uint8_t[length]);
        if (!packet->copy) return Sent::busy;
        payload->memory.peek(packet->copy.get(), length);
        pieces[1] = {packet->copy.get(), length};
        n = 1;
    }
    fi_msg message{};
    message.msg_iov = pieces;
    message.iov_count = size_t(n) + 1;
    message.addr = link->peer->number;
    message.context = &packet->libfabric;
    packet->kind = copies ? Context::Kind::packet : Context::Kind::payload;
    packet->payload = copies ? nullptr : payload;
    const auto error = int(fi_sendmsg(fabric_.endpoint.get(), &message, 0));
    if (error) { // the payload still belongs to its sender
        packet->payload = nullptr;
        packet->copy.reset();
        return refused(link, error);
    }
    (copies ? traffic_.copied : traffic_.in_place) += payload->memory.remaining();
    free_packets_.pop_back();
    unsent_++;
    lend(link);
    return copies ? Sent::now : Sent::later;
}

Sent Wire::refused(ofi::Link *link, int error) {
    if (error == -FI_EAGAIN) return Sent::busy;
    break_link(link, -error);
    return Sent::broken;
}

void Wire::answer(ofi::Link *link, const void *bytes, size_t len) {
    if (flush_answers() && send_packet(link, bytes, len, nullptr) != Sent::busy) return;
    Answer *late = answer_pool_.get();
    if (!late) return break_link(link, FI_ENOMEM);
    late->link = link;
    late->length = len;
    memcpy(static_cast<void *>(&late->grant), bytes, len);
    answers_.push_back(late);
}

bool Wire::flush_answers() {
    while (Answer *first = answers_.front()) {
        if (first->link &&
            send_packet(first->link, &first->grant, first->length, nullptr) == Sent::busy)
            return false;
        answers_.remove(first);
        answer_pool_.put(first);
    }
    return true;
}

} // namespace dtrain::ofi
