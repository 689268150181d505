// Answers with error texts, and failures of a table's function.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/server_table.h"
#include "ps/table/table_wire.h"

#include <cstring>

namespace dtrain::ps {

ServerTable::Answer ServerTable::told(Status status, const char *text) {
    auto kept = std::make_shared<Buffer>();
    const size_t length = strnlen(text, max_told);
    if (length == 0 || !kept->allocate(length + 1)) return {Reason::no_memory, {max_told, 0}};
    std::memcpy(kept->at(0), text, length);
    told_ = std::move(kept);
    return {Reason::told, {static_cast<uint64_t>(-status), 0}};
}

void ServerTable::tell(const RequestHeader &header, Answered::Entry &entry, Status status,
                       const char *text, Responses &out) {
    finish(header, entry, told(status, text), out);
}

void ServerTable::attach_text(Response &response) const {
    response.payload = told_->at(0);
    response.bytes = response.header.count = std::strlen(told_->at(0));
    response.hold = told_;
}

ServerTable::Answer ServerTable::attach_states(Response &response) const {
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

const FunctionCall::Failure &ServerTable::function_failure() const {
    return rows_ != nullptr ? rows_->failure() : shard_->failure();
}

ServerTable::Answer ServerTable::failure_told() {
    const FunctionCall::Failure &failure = function_failure();
    return told(failure.status, failure.text.c_str());
}

void ServerTable::note_broken(uint64_t clock) {
    const FunctionCall::Failure &failure = function_failure();
    if (broken_.status != DTRAIN_OK) return;
    broken_.status = failure.status;
    broken_.text = "the update of clock " + std::to_string(clock) +
                   " was only partly applied; restore a checkpoint: " + failure.text;
}

ServerTable::Answer ServerTable::attach_values(const RequestHeader &header, const void *payload,
                                               Response &response) {
    if (broken_.status != DTRAIN_OK && !has_trait(header.kind, Trait::state))
        return told(broken_.status, broken_.text.c_str());
    return rows_ != nullptr ? attach_rows(header, payload, response) : attach(header, response);
}

} // namespace dtrain::ps
