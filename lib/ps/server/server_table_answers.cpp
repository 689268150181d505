// Makes answers with their payloads, and limits the memory that the server holds for each worker.
// SPDX-License-Identifier: Apache-2.0
//
// A worker over its limit gets an error instead of values that would need a copy. A request that
// would have to wait is dropped as if it had been lost; its sender repeats it, so it does not fail.
// Therefore no request that other workers wait for is refused.
#include "ps/server/server_table.h"

#include "ps/table/item.h"
#include "ps/table/table_wire.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dtrain::ps {

void ServerTable::respond(const RequestHeader &header, const Answer &answer, Responses &out,
                          const void *payload) {
    Response &response = out.emplace_back();
    response.packed = (header.flags & packed_answer) != 0;
    response.worker = header.worker;
    ResponseHeader &reply = response.header;
    reply.kind = header.kind;
    reply.table = header.table;
    reply.server = identity_.server;
    reply.sequence = header.sequence;
    if (made()) reply.table_version = storage_->updates();
    reply.partition = check_.partition().version();
    Answer said = answer;
    if (has_trait(header.kind, Trait::receives) && answer.reason == Reason::none) {
        said = attach_values(header, payload, response);
        if (said.reason == Reason::none) said.numbers[0] = answer.numbers[0];
        if (response.hold != nullptr && copies(header))
            response.charge = Charge(peers_[header.worker], response.hold->bytes());
    }
    if (header.kind == RequestKind::create && answer.reason == Reason::none)
        said = attach_states(response);
    if (header.kind == RequestKind::create && said.reason == Reason::none) // rows may lack room
        said.numbers[0] =
            (storage_->sparse() != nullptr && (identity_.limited || identity_.params.max_bytes > 0)
                 ? created_limited
                 : 0) |
            (inherited_ ? created_inherited : 0);
    if (said.reason == Reason::told) texts_.attach(response);
    Worker &worker = workers_[header.worker];
    worker.counters.received += response.bytes;
    worker.counters.refused += is_failure(said.reason);
    if (has_trait(header.kind, Trait::receives) && said.reason != Reason::waits)
        worker.pulled = reply.table_version;
    reply.reason = said.reason;
    std::copy_n(said.numbers, 2, reply.numbers);
    if (!is_failure(said.reason) && said.reason != Reason::waits)
        reply.numbers[1] = clocks_.applied();
}

void ServerTable::finish(const RequestHeader &header, Answered::Entry &entry, const Answer &answer,
                         Responses &out, const void *payload) {
    if (answer.reason == Reason::none && !may_answer(header))
        return finish(header, entry, over_limit(header.worker), out);
    entry.progress = Progress::done;
    entry.reason = answer.reason;
    Counters &counters = workers_[header.worker].counters;
    ++counters.requests;
    counters.elements += header.count;
    Answer said = answer;
    if (said.reason == Reason::none && has_trait(header.kind, Trait::pushes))
        said.numbers[0] = entry.spoilt;
    std::copy_n(said.numbers, 2, entry.numbers);
    if (said.reason == Reason::told) keep_text(header, entry);
    respond(header, said, out, payload);
    if (out.back().delivery != nullptr) entry.delivery = out.back().delivery;
}

Answer ServerTable::attach_values(const RequestHeader &header, const void *payload,
                                  Response &response) {
    const TableParams &params = identity_.params;
    const bool state = has_trait(header.kind, Trait::state);
    if (broken_.status != DTRAIN_OK && !state)
        return texts_.tell(broken_.status, broken_.text.c_str());
    const Items items = items_of(params, header, payload);
    const Storage::Into into = {response.payload, response.hold, &response.delivery};
    Reason reason = state ? storage_->pull_state(header.argument, items, into)
                          : storage_->pull(items, header.worker, into);
    const Item item = item_of(params, header.kind, header.argument);
    const uint64_t bytes = bytes_on_wire(params, header.kind, item, header.count);
    response.bytes = bytes;
    if (reason == Reason::none && identity_.copies && !storage_copies(header))
        reason = copy_payload(response);
    if (reason == Reason::none) [[likely]] {
        response.header.count = header.count;
        return {};
    }
    response.payload = nullptr;
    response.bytes = 0;
    response.hold.reset();
    if (reason == Reason::told) return failure_told();
    return {reason, {storage_->lacking(bytes), 0}};
}

Answer ServerTable::attach_states(Response &response) const {
    const std::string states = encode_states(identity_.params.states);
    if (states.empty()) return {};
    auto payload = std::make_shared<Buffer>();
    if (!payload->allocate(states.size())) return {Reason::no_memory, {states.size(), 0}};
    std::memcpy(payload->at(0), states.data(), states.size());
    response.payload = payload->at(0);
    response.charge = Charge(peers_[response.worker], payload->bytes());
    response.bytes = response.header.count = states.size();
    response.hold = std::move(payload);
    return {};
}

Reason ServerTable::copy_payload(Response &response) {
    auto copy = std::make_shared<Buffer>();
    if (!copy->allocate(response.bytes)) return Reason::no_memory;
    std::memcpy(copy->at(0), response.payload, response.bytes);
    response.payload = copy->at(0);
    response.hold = std::move(copy);
    return Reason::none;
}

bool ServerTable::copies(const RequestHeader &header) const {
    return identity_.copies || storage_copies(header);
}

bool ServerTable::storage_copies(const RequestHeader &header) const {
    return has_trait(header.kind, Trait::state) ? storage_->copies_state(header.argument)
                                                : storage_->copies_values();
}

bool ServerTable::fits_limit(const RequestHeader &header) const {
    if (!has_trait(header.kind, Trait::receives) || !copies(header)) return true;
    const Item item = item_of(identity_.params, header.kind, header.argument);
    const uint64_t values = bytes_on_wire(identity_.params, header.kind, item, header.count);
    return peers_[header.worker].fits(storage_->copy_bytes(values));
}

Answer ServerTable::over_limit(uint32_t worker) const {
    return {Reason::peer_limit, {peers_[worker].held(), peers_[worker].limit()}};
}

Answer ServerTable::failure_told() {
    const FunctionCall::Failure &failure = storage_->failure();
    return texts_.tell(failure.status, failure.text.c_str());
}

void ServerTable::tell(const RequestHeader &header, Answered::Entry &entry, Status status,
                       const char *text, Responses &out) {
    finish(header, entry, texts_.tell(status, text), out);
}

void ServerTable::keep_text(const RequestHeader &header, Answered::Entry &entry) {
    PeerMemory &memory = peers_[header.worker];
    if (workers_[header.worker].log.keep_text(header.sequence, texts_.last(), memory)) return;
    const Answer instead = over_limit(header.worker);
    entry.reason = instead.reason;
    std::copy_n(instead.numbers, 2, entry.numbers);
}

} // namespace dtrain::ps
