// The payloads of answers, and the requests that change a table besides pushes.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/server_table.h"

#include <bit>

namespace dtrain::ps {

ServerTable::Answer ServerTable::attach(const RequestHeader &header, Response &response) {
    Range range = {header.first, header.count};
    if (header.kind == RequestKind::pull_state) {
        Shard::State state = shard_->state(header.argument, range);
        if (state.numbers == nullptr) return {Reason::no_memory, {bytes_, 0}};
        response.payload = state.numbers;
        response.hold = std::move(state.hold);
    } else if (shard_->transforms()) {
        Reason reason = shard_->transform(range, response.hold);
        if (reason == Reason::told) return failure_told();
        if (reason != Reason::none) return {reason, {bytes_, 0}};
        response.payload = response.hold->at(0);
    } else {
        Reason reason = shard_->note_pull(header.worker, range);
        if (reason != Reason::none) return {reason, {bytes_, 0}};
        if (shard_->lie_as_sent()) {
            response.payload = shard_->at(header.first);
            response.hold = shard_->values();
        } else {
            response.hold = shard_->as_sent(range);
            if (response.hold == nullptr) return {Reason::no_memory, {bytes_, 0}};
            response.payload = response.hold->at(0);
        }
    }
    Item item = item_of(identity_.params, header.kind, header.argument);
    response.header.count = header.count;
    response.bytes = bytes_on_wire(identity_.params, header.kind, item, header.count);
    return {};
}

void ServerTable::set_state(const RequestHeader &header, const void *payload,
                            Answered::Entry &entry, Responses &out) {
    Reason reason = shard_->set_state(header.argument, {header.first, header.count}, payload);
    finish(header, entry, {reason, {bytes_, 0}}, out);
}

void ServerTable::set_rate(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    const TableParams &params = identity_.params;
    auto rate = std::bit_cast<double>(header.argument);
    if (!has_rate(params) || !valid_rate(params, rate))
        return finish(header, entry, {Reason::bad_rate, {params.rule, 0}}, out);
    Verdict verdict = collects(params) ? may_push(header) : Verdict::stale;
    if (verdict == Verdict::stale) { // the new rate applies from now on
        if (rows_ != nullptr)
            rows_->set_rate(rate);
        else
            shard_->set_rate(rate);
        return finish(header, entry, {}, out);
    }
    if (verdict == Verdict::wait) return hold(header, entry);
    if (verdict != Verdict::go) return finish(header, entry, refusal(verdict, header), out);
    if (rows_ != nullptr)
        rows_->set_rate(rate, header.clock);
    else
        shard_->set_rate(rate, header.clock);
    finish(header, entry, {}, out);
}

void ServerTable::set_ready(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    ready_ = true;
    finish(header, entry, {}, out);
    release(out);
}

void ServerTable::wait_ready(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    Verdict verdict = may_go_on(header);
    if (verdict != Verdict::wait)
        return finish(header, entry, verdict == Verdict::go ? Answer{} : refusal(verdict, header),
                      out);
    park(header, entry);
}

} // namespace dtrain::ps
