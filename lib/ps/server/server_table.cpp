// Checks and dispatches the requests for a table, and answers pushes and pulls.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/server_table.h"

#include "device/finite.h"
#include "device/kernels.h"
#include "ps/table/narrow.h"

#include <algorithm>
#include <bit>

namespace dtrain::ps {

ServerTable::ServerTable(const Identity &identity, const KeyPartition &partition, Contents contents,
                         Archive *archive, PeerMemory *peers)
    : identity_(identity), partition_(partition), bytes_(dense_bytes(contents.shard.get())),
      shard_(std::move(contents.shard)), rows_(std::move(contents.rows)), archive_(archive),
      peers_(peers), clocks_(mode_of(identity.params), identity.workers),
      members_(identity.workers), present_(identity.workers) {}

ServerTable::~ServerTable() = default;

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
    if (!unmade()) reply.table_version = updates();
    reply.partition = partition_.version();
    Answer said = answer;
    if (has_trait(header.kind, Trait::receives) && answer.reason == Reason::none) {
        said = attach_values(header, payload, response);
        if (said.reason == Reason::none) said.numbers[0] = answer.numbers[0];
        if (response.hold != nullptr && copies(header))
            response.charge = Charge(peers_[header.worker], response.hold->bytes());
    }
    if (header.kind == RequestKind::create && answer.reason == Reason::none)
        said = attach_states(response);
    if (header.kind == RequestKind::create && said.reason == Reason::none)
        said.numbers[0] = lacks_room_at_times();
    if (said.reason == Reason::told) attach_text(response);
    Member &member = members_[header.worker];
    member.counters.received += response.bytes;
    member.counters.refused += is_failure(said.reason);
    if (has_trait(header.kind, Trait::receives)) member.pulled = reply.table_version;
    reply.reason = said.reason;
    std::copy_n(said.numbers, 2, reply.numbers);
    if (!is_failure(said.reason)) reply.numbers[1] = clocks_.applied();
}

void ServerTable::finish(const RequestHeader &header, Answered::Entry &entry, const Answer &answer,
                         Responses &out, const void *payload) {
    if (answer.reason == Reason::none && !may_answer(header))
        return finish(header, entry, over_limit(header.worker), out);
    entry.progress = Progress::done;
    entry.reason = answer.reason;
    Counters &counters = members_[header.worker].counters;
    ++counters.requests;
    counters.elements += header.count;
    Answer said = answer;
    if (said.reason == Reason::none && has_trait(header.kind, Trait::pushes))
        said.numbers[0] = entry.spoilt;
    std::copy_n(said.numbers, 2, entry.numbers);
    if (said.reason == Reason::told) keep_text(header, entry);
    respond(header, said, out, payload);
}

ServerTable::Answer ServerTable::check(const RequestHeader &header, const void *payload,
                                       uint64_t bytes) const {
    if (header.partition != partition_.version())
        return {Reason::wrong_partition, {header.partition, partition_.version()}};
    const bool about_rows = has_trait(header.kind, Trait::rows);
    const bool ranged = has_trait(header.kind, Trait::ranged);
    if ((ranged || about_rows) && about_rows != (rows_ != nullptr))
        return {Reason::wrong_kind, {0, 0}};
    if (!ranged) return {};
    return rows_ != nullptr ? check_rows(header, payload, bytes) : check_range(header, bytes);
}

ServerTable::Answer ServerTable::check_range(const RequestHeader &header, uint64_t bytes) const {
    Item item = item_of(identity_.params, header.kind, header.argument);
    if (item.bytes == 0) return {Reason::unknown_state, {header.argument, 0}};
    bool whole = header.first % item.elements == 0 && header.count % item.elements == 0;
    if (!whole || !shard_->part().contains({header.first, header.count}))
        return {Reason::bad_range, {header.first, header.count}};
    if (header.count / item.elements > chunk_bytes / item.bytes)
        return {Reason::bad_size, {item.bytes_of(header.count), chunk_bytes}};
    const bool sends = has_trait(header.kind, Trait::sends);
    const uint64_t due =
        sends ? bytes_on_wire(identity_.params, header.kind, item, header.count) : 0;
    if (bytes != due) return {Reason::bad_size, {bytes, due}};
    return {};
}

void ServerTable::request(const RequestHeader &header, const void *payload, uint64_t bytes,
                          Responses &out) {
    Member &member = members_[header.worker];
    if (unmade() || !member.present)
        return respond(header, {Reason::unknown_table, {header.table, 0}}, out);
    if (member.answered == nullptr) member.answered = std::make_unique<Answered>();
    Answered &answered = *member.answered;
    Reason reason = answered.check(header.sequence);
    if (reason != Reason::none)
        return respond(header, {reason, {header.sequence, answered.newest()}}, out);
    Answer bad = check(header, payload, bytes);
    // An invalid request is not recorded: a repetition is just as invalid.
    if (bad.reason != Reason::none) {
        if (identity_.params.reproducible != 0) answered.entry(header.sequence).refused = true;
        return respond(header, bad, out);
    }

    Answered::Entry &entry = answered.entry(header.sequence);
    member.counters.sent += bytes;
    member.counters.repeats += entry.progress != Progress::unseen;
    if (header.kind == RequestKind::cancel) return cancel(header, entry, out);
    switch (entry.progress) {
    case Progress::parked: return; // it will be answered later
    case Progress::done:
        if (entry.reason == Reason::told) told_ = member.texts[header.sequence].text;
        if (entry.reason == Reason::none && !may_answer(header)) return; // it will be repeated
        return respond(header, {entry.reason, {entry.numbers[0], entry.numbers[1]}}, out, payload);
    default: start(header, payload, entry, out);
    }
    if (identity_.params.reproducible != 0) release(out); // pushes that waited for this request
}

void ServerTable::start(const RequestHeader &header, const void *payload, Answered::Entry &entry,
                        Responses &out) {
    switch (header.kind) {
    case RequestKind::push:
    case RequestKind::push_pull:
    case RequestKind::push_rows:
    case RequestKind::push_pull_rows: return push(header, payload, entry, out);
    case RequestKind::pull:
    case RequestKind::pull_rows: return pull(header, payload, entry, out);
    case RequestKind::clock: return clock(header, entry, out);
    case RequestKind::keep_rows: return keep_rows(header, payload, entry, out);
    case RequestKind::end_keeping:
        end_keeping(members_[header.worker], header.argument);
        return finish(header, entry, {}, out);
    case RequestKind::pull_state: return finish(header, entry, {}, out);
    case RequestKind::pull_state_rows: return finish(header, entry, {}, out, payload);
    case RequestKind::set_state: return set_state(header, payload, entry, out);
    case RequestKind::set_rate: return set_rate(header, entry, out);
    case RequestKind::save:
    case RequestKind::restore: return archive(header, entry, out);
    case RequestKind::adopt: return adopt(header, entry, out);
    case RequestKind::discard: return discard(header, entry, out);
    case RequestKind::set_mode: return set_mode(header, entry, out);
    case RequestKind::set_ready: return set_ready(header, entry, out);
    case RequestKind::wait_ready: return wait_ready(header, entry, out);
    case RequestKind::set:
        shard_->set({header.first, header.count}, values_of(header, payload));
        return finish(header, entry, {}, out);
    default: return finish(header, entry, change_rows(header, payload), out);
    }
}

ServerTable::Answer ServerTable::refusal(Verdict verdict, const RequestHeader &header) const {
    uint32_t lost = clocks_.lost_worker();
    switch (verdict) {
    case Verdict::lost:
        if (clocks_.mode().quorum > 0) return {Reason::quorum_lost, {lost, clocks_.mode().quorum}};
        return {Reason::worker_lost, {lost, clocks_.finished(lost)}};
    case Verdict::passed: return {Reason::clock_passed, {header.clock, clocks_.applied()}};
    default:
        if (has_trait(header.kind, Trait::receives) && !has_trait(header.kind, Trait::pushes))
            return {Reason::version_ahead, {updates(), header.argument}};
        return {Reason::clock_ahead, {header.clock, clocks_.finished(header.worker)}};
    }
}

void ServerTable::push(const RequestHeader &header, const void *payload, Answered::Entry &entry,
                       Responses &out) {
    const bool pulls = has_trait(header.kind, Trait::receives);
    if (pulls && entry.pushed) return pull(header, payload, entry, out); // the pull had to wait
    if (pulls && collects(identity_.params))
        return finish(header, entry, {Reason::not_in_mode, {0, 0}}, out);
    Verdict verdict = may_push(header);
    if (verdict == Verdict::wait) return hold(header, entry);
    if (verdict == Verdict::stale) return finish(header, entry, stale(header), out);
    if (verdict != Verdict::go) return finish(header, entry, refusal(verdict, header), out);

    Member &member = members_[header.worker];
    if ((header.flags & begins_push) != 0)
        member.counters.staleness.add(updates() - std::min(updates(), member.pulled));
    Answer answer = !fits(header)                  ? Answer{Reason::bad_weight}
                    : pulls && !may_answer(header) ? over_limit(header.worker)
                    : broken_.status != DTRAIN_OK  ? told(broken_.status, broken_.text.c_str())
                    : rows_ != nullptr             ? take_rows(header, payload, entry)
                                                   : take(header, payload, entry);
    // A refused push counts as settled, too, so that its clock can end.
    clocks_.count_push(header.worker, header.clock);
    entry.pushed = true;
    if (answer.reason == Reason::none && pulls)
        pull(header, payload, entry, out);
    else
        finish(header, entry, answer, out);
    settle(out);
}

bool ServerTable::fits(const RequestHeader &header) const {
    const auto weight = std::bit_cast<double>(header.argument);
    return header.argument == 0 || (takes_weights(identity_.params) && valid_weight(weight));
}

double ServerTable::weight_of(const RequestHeader &header) const {
    return header.argument == 0 ? 1 : std::bit_cast<double>(header.argument);
}

const void *ServerTable::values_of(const RequestHeader &header, const void *sent) {
    const TableParams &params = identity_.params;
    const uint32_t dtype = travels_narrow(params, header.kind) ? params.wire_dtype : params.dtype;
    if (dtype == computed_dtype(params)) return sent;
    if (taken_.empty()) // room for the most elements that a request can have
        taken_.resize(chunk_bytes / device::dtype_size(params.dtype) * sizeof(float));
    const uint64_t rows = rows_ != nullptr ? header.count : 1;
    const uint64_t count = rows_ != nullptr ? params.dim : header.count; // elements of each
    const auto *from = static_cast<const char *>(sent);
    auto *to = reinterpret_cast<float *>(taken_.data());
    for (uint64_t i = 0; i < rows; ++i, from += row_bytes(dtype, count))
        read_row(to + i * count, dtype, from, count);
    return to;
}

ServerTable::Answer ServerTable::spoilt(const RequestHeader &header, uint64_t item,
                                        Answered::Entry &entry) {
    if (identity_.params.not_finite == DTRAIN_NOT_FINITE_REFUSE)
        return {Reason::not_finite, {item, header.worker}};
    entry.spoilt = true;
    ++members_[header.worker].counters.not_finite;
    return {};
}

ServerTable::Answer ServerTable::take(const RequestHeader &header, const void *payload,
                                      Answered::Entry &entry) {
    Range range = {header.first, header.count};
    payload = values_of(header, payload);
    if (identity_.params.not_finite != DTRAIN_NOT_FINITE_TAKE) {
        const uint64_t at =
            device::first_not_finite(payload, range.count, computed_dtype(identity_.params));
        if (at < range.count) return spoilt(header, range.first + at, entry);
    }
    Reason reason =
        collects(identity_.params)
            ? shard_->collect(sum_of(header), range, payload, weight_of(header))
            : shard_->push(range, payload, (header.flags & begins_push) != 0, header.worker);
    return reason == Reason::told ? failure_told() : Answer{reason, {bytes_, 0}};
}

void ServerTable::pull(const RequestHeader &header, const void *payload, Answered::Entry &entry,
                       Responses &out) {
    Verdict verdict = may_pull(header);
    if (verdict != Verdict::wait)
        return finish(header, entry, verdict == Verdict::go ? Answer{} : refusal(verdict, header),
                      out, payload);
    if (rows_ != nullptr) return hold(header, entry); // the server would have to keep its keys
    park(header, entry);
}

} // namespace dtrain::ps
