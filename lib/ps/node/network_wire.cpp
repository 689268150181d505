// Sends requests over the network, receives their answers, and withdraws both.
// SPDX-License-Identifier: Apache-2.0
#include "ps/node/network_wire.h"

namespace dtrain::ps {
namespace {

// A live server answers a repetition soon after the request itself, so late answers need not be
// awaited longer than purge_for.
constexpr int64_t purge_interval = 100 * ms, purge_for = 30 * second;
constexpr uint32_t longest_held = 8; // rounds of polling without an answer

} // namespace

NetworkWire::NetworkWire(engine::Agent &agent, engine::Mesh &mesh, uint32_t self,
                         const ServerList &servers)
    : agent_(agent), mesh_(mesh), self_(self), servers_(servers), headers_(agent),
      packs_(agent, mesh, request_tag(self)),
      inbox_(agent, mesh.inbound(packed_answers_tag(0)), most_pack_bytes,
             [this](uint32_t member, const char *message, uint64_t bytes) {
                 take_pack(member, message, bytes);
             }) {}

Status NetworkWire::open(Client &client) {
    client_ = &client;
    return inbox_.open();
}

bool NetworkWire::close() {
    if (!idle()) return false;
    inbox_.close();
    return inbox_.idle();
}

Status NetworkWire::pack(uint32_t server, Outgoing &request) {
    const uint32_t member = servers_.member(server);
    Status s = packs_.add(member, request.header, request.payload, request.payload_bytes);
    if (s != DTRAIN_OK) return s;
    if (server >= copies_.size()) copies_.resize(server + 1);
    if (!request.copied) {
        all_copies_++;
        if (copies_[server]++ == 0) packs_.flush(member);
    }
    request.copied = true;
    return DTRAIN_OK;
}

void NetworkWire::take_pack(uint32_t member, const char *message, uint64_t bytes) {
    const uint32_t server = servers_.number(member);
    if (server == ServerList::none || !is_pack(message, bytes)) return;
    held_ = 0;
    auto take = [&](const ResponseHeader &header, const char *payload, uint64_t size) {
        client_->on_packed_answer(server, header, payload, size, agent_.now());
    };
    unpack<ResponseHeader>(message, bytes, take);
}

NetworkWire::Slot &NetworkWire::slot_of(uint32_t server, Outgoing &request) {
    if (request.wire != nullptr) return *static_cast<Slot *>(request.wire);
    if (free_.empty()) {
        slots_.push_back(std::make_unique<Slot>());
        Slot &fresh = *slots_.back();
        fresh.wire = this;
        fresh.headers = headers_.take<Headers>();
        fresh.sent.slot = fresh.answered.slot = &fresh;
        fresh.sent.done = &NetworkWire::sent;
        fresh.answered.done = &NetworkWire::answered;
        free_.push_back(&fresh);
    }
    Slot &slot = *free_.back();
    free_.pop_back();
    slot.request = &request;
    slot.server = server;
    slot.unanswered = 0;
    request.wire = &slot;
    return slot;
}

Status NetworkWire::listen(Slot &slot) {
    const Outgoing &request = *slot.request;
    ResponseHeader &header = slot.headers->response;
    dtrain_tp_iov_t iov[] = {{.addr = &header, .len = sizeof header, .mr = nullptr},
                             {.addr = request.answer, .len = request.answer_bytes, .mr = nullptr}};
    uint32_t member = servers_.member(slot.server);
    Status s = mesh_.recv(member, answer_tag(member, request.header.table, request.header.sequence),
                          engine::exact, iov, request.answer_bytes > 0 ? 2 : 1, &slot.answered);
    if (s != DTRAIN_OK) return s;
    slot.answered.pending = true;
    pending_++;
    return DTRAIN_OK;
}

void NetworkWire::register_scratch(uint32_t member, const Outgoing &request) {
    if (request.scratch != nullptr && mesh_.device(member)->has(DTRAIN_TP_CAP_PUT))
        request.scratch->register_once(agent_.devices());
}

Status NetworkWire::send(uint32_t server, Outgoing &request) {
    const bool packed = request.answer_bytes <= most_packed;
    if (packed) request.header.flags |= packed_answer;
    if (packed && request.payload_bytes <= most_packed) return pack(server, request);
    Slot &slot = slot_of(server, request);
    register_scratch(servers_.member(server), request);
    if (!packed && !slot.answered.pending)
        if (Status s = listen(slot); s != DTRAIN_OK) return s;
    RequestHeader &header = slot.headers->request;
    header = request.header;
    dtrain_tp_iov_t iov[] = {{.addr = &header, .len = sizeof header, .mr = nullptr},
                             {.addr = const_cast<void *>(request.payload), // is only read
                              .len = request.payload_bytes,
                              .mr = nullptr}};
    Status s = mesh_.send(servers_.member(server), request_tag(self_), iov,
                          request.payload_bytes > 0 ? 2 : 1, &slot.sent);
    if (s != DTRAIN_OK) return s;
    slot.sent.pending = true;
    slot.unanswered += !packed;
    pending_++;
    return DTRAIN_OK;
}

void NetworkWire::withdraw(uint32_t server, Outgoing &request) {
    // Does not call on_withdrawn() from here, since the client is within a call.
    if (request.copied) return copies_withdrawn_.push_back(&request);
    Slot &slot = slot_of(server, request);
    slot.withdrawing = true;
    uint32_t member = servers_.member(server);
    if (slot.sent.pending) mesh_.withdraw(member, &slot.sent);
    if (slot.answered.pending) mesh_.withdraw(member, &slot.answered);
    if (!slot.sent.pending && !slot.answered.pending) withdrawn_.push_back(&slot);
}

void NetworkWire::settled(uint32_t server, Outgoing &request) {
    if (request.copied) {
        copies_[server]--;
        all_copies_--;
    }
    if (request.wire == nullptr) return; // packed, or never sent over the network
    Slot &slot = *static_cast<Slot *>(request.wire);
    request.wire = nullptr;
    free_.push_back(&slot);
    if (slot.unanswered <= 0) return;
    uint64_t tag =
        answer_tag(servers_.member(server), request.header.table, request.header.sequence);
    late_.push_back({tag, agent_.now() + purge_for});
}

void NetworkWire::purge_late(int64_t now) {
    if (late_.empty() || now < next_purge_) return;
    next_purge_ = now + purge_interval;
    for (const Late &late : late_) mesh_.purge(late.tag, engine::exact);
    while (!late_.empty() && late_.front().until <= now) late_.pop_front();
}

void NetworkWire::flush_when_worth() {
    if (!blocked_ && 2 * packs_.added() < all_copies_ && ++held_ < longest_held) return;
    held_ = 0;
    packs_.flush();
    blocked_ = packs_.waiting();
}

void NetworkWire::move() {
    inbox_.retry();
    while (!copies_withdrawn_.empty()) {
        Outgoing *request = copies_withdrawn_.back();
        copies_withdrawn_.pop_back();
        client_->on_withdrawn(*request, agent_.now());
    }
    flush_when_worth();
    purge_late(agent_.now());
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
    // The status does not matter: the client repeats a lost message, since no answer comes.
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
    const ResponseHeader &header = slot.headers->response;
    bool came = event.status == DTRAIN_OK || event.status == DTRAIN_ERR_TRUNCATED;
    if (came) slot.unanswered--;
    if (slot.withdrawing) return wire.settle(slot);
    if (event.status == DTRAIN_ERR_CORRUPT) [[unlikely]] {
        const uint32_t member = wire.servers_.member(slot.server);
        wire.damage_.tell(wire.agent_, member, wire.mesh_.way(member, 0));
    }
    if (came && event.bytes < sizeof header)
        return wire.client_->on_fragment(*slot.request, event.bytes, wire.agent_.now());
    // An answer that is longer than the receive belongs to the canceled request of the same number,
    // or is malformed; the client checks its header.
    if (!came || !wire.client_->on_response(*slot.request, header, event.bytes - sizeof header,
                                            wire.agent_.now()))
        (void)wire.listen(slot); // an old answer that was sent twice; send() retries a failure
}

} // namespace dtrain::ps
