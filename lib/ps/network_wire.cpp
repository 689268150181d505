// SPDX-License-Identifier: Apache-2.0
#include "ps/network_wire.h"

namespace dtrain::ps {

NetworkWire::Slot &NetworkWire::slot_of(uint32_t server, Outgoing &request) {
    if (request.wire == nullptr) {
        slots_.push_back(std::make_unique<Slot>());
        Slot &slot = *slots_.back();
        slot.wire = this;
        slot.sent.slot = slot.answered.slot = &slot;
        slot.sent.done = &NetworkWire::sent;
        slot.answered.done = &NetworkWire::answered;
        request.wire = &slot;
    }
    Slot &slot = *static_cast<Slot *>(request.wire);
    slot.request = &request;
    slot.server = server;
    return slot;
}

Status NetworkWire::listen(Slot &slot) {
    const Outgoing &request = *slot.request;
    dtrain_tp_iov_t iov[] = {{.addr = &slot.header, .len = sizeof slot.header, .mr = nullptr},
                             {.addr = request.answer, .len = request.answer_bytes, .mr = nullptr}};
    uint32_t member = first_server_ + slot.server;
    Status s = mesh_.recv(member, answer_tag(member, request.header.table, request.header.sequence),
                          engine::exact, iov, request.answer_bytes > 0 ? 2 : 1, &slot.answered);
    if (s != DTRAIN_OK) return s;
    slot.answered.pending = true;
    pending_++;
    return DTRAIN_OK;
}

Status NetworkWire::send(uint32_t server, Outgoing &request) {
    Slot &slot = slot_of(server, request);
    if (!slot.answered.pending)
        if (Status s = listen(slot); s != DTRAIN_OK) return s;
    dtrain_tp_iov_t iov[] = {{.addr = &request.header, .len = sizeof request.header, .mr = nullptr},
                             {.addr = const_cast<void *>(request.payload), // is only read
                              .len = request.payload_bytes,
                              .mr = nullptr}};
    Status s = mesh_.send(first_server_ + server, request_tag(self_), iov,
                          request.payload_bytes > 0 ? 2 : 1, &slot.sent);
    if (s != DTRAIN_OK) return s;
    slot.sent.pending = true;
    pending_++;
    return DTRAIN_OK;
}

void NetworkWire::withdraw(uint32_t server, Outgoing &request) {
    Slot &slot = slot_of(server, request);
    slot.withdrawing = true;
    uint32_t member = first_server_ + server;
    if (slot.sent.pending) mesh_.cancel(member, &slot.sent);
    if (slot.answered.pending) mesh_.cancel(member, &slot.answered);
    // Never from here: the client is inside of a call.
    if (!slot.sent.pending && !slot.answered.pending) withdrawn_.push_back(&slot);
}

void NetworkWire::run() {
    while (!withdrawn_.empty()) {
        Slot *slot = withdrawn_.back();
        withdrawn_.pop_back();
        settle(*slot);
    }
}

void NetworkWire::settle(Slot &slot) {
    if (!slot.withdrawing || slot.sent.pending || slot.answered.pending) return;
    slot.withdrawing = false;
    client_->on_withdrawn(*slot.request, agent_.now());
}

void NetworkWire::sent(engine::Completion *self, const dtrain_tp_done_t &) {
    Half &half = *static_cast<Half *>(self);
    Slot &slot = *half.slot;
    NetworkWire &wire = *slot.wire;
    half.pending = false;
    wire.pending_--;
    // A message that did not get through is one without an answer: it will be sent again.
    if (slot.withdrawing)
        wire.settle(slot);
    else
        wire.client_->on_sent(*slot.request, wire.agent_.now());
}

void NetworkWire::answered(engine::Completion *self, const dtrain_tp_done_t &event) {
    Half &half = *static_cast<Half *>(self);
    Slot &slot = *half.slot;
    NetworkWire &wire = *slot.wire;
    half.pending = false;
    wire.pending_--;
    if (slot.withdrawing) return wire.settle(slot);
    bool whole = event.status == DTRAIN_OK && event.bytes >= sizeof slot.header;
    if (!whole || !wire.client_->on_response(*slot.request, slot.header,
                                             event.bytes - sizeof slot.header, wire.agent_.now()))
        (void)wire.listen(slot); // an old answer, sent twice; send() listens if this fails
}

} // namespace dtrain::ps
