// Requests that read or change the values of a table, and rooms for the rows of pushes.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/server_table.h"

#include "device/finite.h"
#include "ps/storage/sparse_shard.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace dtrain::ps {

void ServerTable::push(const RequestHeader &header, const void *payload, Answered::Entry &entry,
                       Responses &out) {
    const bool pulls = has_trait(header.kind, Trait::receives);
    if (pulls && entry.pushed) return pull(header, payload, entry, out); // the pull had to wait
    if (pulls && collects(identity_.params))
        return finish(header, entry, {Reason::not_in_mode, {0, 0}}, out);
    Verdict verdict = may_push(header);
    if (verdict == Verdict::wait) return hold(header, entry, out);
    if (verdict == Verdict::stale) return finish(header, entry, stale(header), out);
    if (verdict != Verdict::go) return finish(header, entry, refusal(verdict, header), out);

    Worker &worker = workers_[header.worker];
    const uint64_t updates = storage_->updates();
    if ((header.flags & begins_push) != 0)
        worker.counters.staleness.add(updates - std::min(updates, worker.pulled));
    Answer answer = !weight_fits(identity_.params, header)  ? Answer{Reason::bad_weight}
                    : pulls && !may_answer(header)          ? over_limit(header.worker)
                    : barred(header).reason != Reason::none ? barred(header)
                    : broken_.status != DTRAIN_OK
                        ? texts_.tell(broken_.status, broken_.text.c_str())
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

// Applies or collects a push.
Answer ServerTable::take(const RequestHeader &header, const void *payload, Answered::Entry &entry) {
    const TableParams &params = identity_.params;
    const Items items = items_of(params, header, payload);
    const void *g = values_.computed(header, items, payload);
    if (params.not_finite != DTRAIN_NOT_FINITE_TAKE) {
        const uint64_t at = device::first_not_finite(g, items.elements(), computed_dtype(params));
        if (at < items.elements()) return spoilt(header, items.at(at), entry);
    }
    const bool begins = (header.flags & begins_push) != 0;
    const Reason reason = collects(params) ? storage_->collect(sum_of(params, header), items, g,
                                                               weight_of(header), header.worker)
                                           : storage_->push(items, g, begins, header.worker);
    return reason == Reason::none ? Answer{} : outcome(reason);
}

Answer ServerTable::spoilt(const RequestHeader &header, uint64_t item, Answered::Entry &entry) {
    if (identity_.params.not_finite == DTRAIN_NOT_FINITE_REFUSE)
        return {Reason::not_finite, {item, header.worker}};
    entry.spoilt = true;
    ++workers_[header.worker].counters.not_finite;
    return {};
}

// Makes an answer with the numbers for the text of a limit.
Answer ServerTable::outcome(Reason reason) {
    if (reason == Reason::told) return failure_told();
    const auto [used, left] = storage_->limits();
    return {reason, {used, left}};
}

void ServerTable::pull(const RequestHeader &header, const void *payload, Answered::Entry &entry,
                       Responses &out) {
    Verdict verdict = may_pull(header);
    if (verdict != Verdict::wait)
        return finish(header, entry, verdict == Verdict::go ? Answer{} : refusal(verdict, header),
                      out, payload);
    // If the request waited here, the server would have to keep its keys.
    if (has_trait(header.kind, Trait::rows)) return hold(header, entry, out);
    park(header, entry);
}

void ServerTable::set(const RequestHeader &header, const void *payload, Answered::Entry &entry,
                      Responses &out) {
    const Items items = items_of(identity_.params, header, payload);
    const Reason reason = storage_->set(items, values_.computed(header, items, payload));
    const bool rows = header.kind != RequestKind::set; // a range always has its memory
    finish(header, entry, rows || reason != Reason::none ? outcome(reason) : Answer{}, out);
}

void ServerTable::set_state(const RequestHeader &header, const void *payload,
                            Answered::Entry &entry, Responses &out) {
    const Items items = items_of(identity_.params, header, payload);
    const void *numbers = numbers_of(header, payload);
    finish(header, entry, outcome(storage_->set_state(header.argument, items, numbers)), out);
}

void ServerTable::prefetch(const uint64_t *keys, size_t count, bool rows) const {
    const SparseShard *shard = made() ? storage_->sparse() : nullptr;
    if (shard == nullptr) return;
    if (rows)
        shard->rows().prefetch_rows(keys, count);
    else
        shard->rows().prefetch_buckets(keys, count);
}

void ServerTable::erase_rows(const RequestHeader &header, const void *payload,
                             Answered::Entry &entry, Responses &out) {
    storage_->sparse()->erase(static_cast<const uint64_t *>(payload), header.count);
    finish(header, entry, {}, out);
}

void ServerTable::count_rows(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    finish(header, entry, {Reason::none, {storage_->sparse()->size(), 0}}, out);
}

void ServerTable::keep_rows(const RequestHeader &header, const void *payload,
                            Answered::Entry &entry, Responses &out) {
    const Verdict verdict = may_push(header);
    if (verdict == Verdict::wait) return hold(header, entry, out);
    // If the worker may not push at all, the push itself gets the error.
    const bool takes = verdict == Verdict::go && barred(header).reason == Reason::none;
    const auto *keys = static_cast<const uint64_t *>(payload);
    finish(header, entry, takes ? keep_room(header, keys) : Answer{}, out);
}

Answer ServerTable::keep_room(const RequestHeader &header, const uint64_t *keys) {
    KeptRooms &rooms = workers_[header.worker].rooms;
    std::optional<uint32_t> sum;
    if (collects(identity_.params)) sum = sum_of(identity_.params, header);
    const Reason reason = rooms.keep(*storage_->sparse(), header.argument, sum, keys, header.count);
    if (reason == Reason::window) return {reason, {header.argument, rooms.newest()}};
    return outcome(reason);
}

void ServerTable::end_keeping(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    workers_[header.worker].rooms.end(storage_->sparse(), header.argument);
    finish(header, entry, {}, out);
}

void ServerTable::set_rate(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    const TableParams &params = identity_.params;
    auto rate = std::bit_cast<double>(header.argument);
    if (!has_rate(params) || !valid_rate(params, rate))
        return finish(header, entry, {Reason::bad_rate, {params.rule, 0}}, out);
    Verdict verdict = collects(params) ? may_push(header) : Verdict::stale;
    if (verdict == Verdict::stale) { // the new rate applies from now on
        storage_->set_rate(rate);
        return finish(header, entry, {}, out);
    }
    if (verdict == Verdict::wait) return hold(header, entry, out);
    if (verdict != Verdict::go) return finish(header, entry, refusal(verdict, header), out);
    storage_->set_rate(rate, header.clock);
    finish(header, entry, {}, out);
}

void ServerTable::set_updates(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    const uint64_t before = storage_->updates(), now = header.argument;
    if (now > most_updates) return finish(header, entry, {Reason::bad_steps, {now, 0}}, out);
    for (Worker &worker : workers_) { // what each has pulled is as old as it was
        const uint64_t age = before - std::min(before, worker.pulled);
        worker.pulled = now - std::min(now, age);
    }
    storage_->set_updates(now);
    finish(header, entry, {}, out);
    settle(out); // a pull may have waited for this version
}

} // namespace dtrain::ps
