// How requests wait for clocks, and what happens when clocks end.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/server_table.h"

#include <algorithm>
#include <bit>

namespace dtrain::ps {

void ServerTable::clock(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    // A clock with an invalid weight ends without it, so that other workers do not wait forever.
    const bool fit = fits(header);
    const Weight weight = {std::bit_cast<double>(header.argument), (header.flags & weighted) != 0};
    const Verdict verdict =
        clocks_.announce(header.worker, header.clock, header.pushes, fit ? weight : Weight{});
    if (verdict == Verdict::wait) return hold(header, entry);
    Answer answer;
    if (verdict == Verdict::stale)
        answer = stale(header);
    else if (verdict == Verdict::passed)
        answer = {Reason::clock_changed, {header.clock, header.pushes}};
    else if (verdict != Verdict::go)
        answer = refusal(verdict, header);
    else if (!fit)
        answer = {Reason::bad_weight};
    finish(header, entry, answer, out);
    settle(out);
}

void ServerTable::hold(const RequestHeader &header, Answered::Entry &entry) {
    if (entry.progress == Progress::held) return; // a repetition that is still too early
    ++members_[header.worker].counters.dropped;
    if (keep(held_, header)) entry.progress = Progress::held;
}

void ServerTable::cancel(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    auto same = [&](const Waiting &other) {
        return other.header.worker == header.worker && other.header.sequence == header.sequence;
    };
    if (entry.progress == Progress::done) return respond(header, {}, out);
    std::erase_if(parked_, same);
    std::erase_if(held_, same);
    bool push = (header.flags & counted_push) != 0 && !entry.pushed;
    Verdict verdict = push ? clocks_.push(header.worker, header.clock) : Verdict::passed;
    if (verdict == Verdict::go || verdict == Verdict::wait || verdict == Verdict::lost)
        clocks_.count_push(header.worker, header.clock);
    finish(header, entry, {Reason::canceled, {0, 0}}, out);
    settle(out);
}

void ServerTable::settle(Responses &out) {
    if (collects(identity_.params))
        for (; clocks_.ready(); release(out)) {
            apply_clock();
            clocks_.advance();
        }
    release(out);
}

uint32_t ServerTable::sum_of(const RequestHeader &header) const {
    return collects_apart(identity_.params) ? header.worker
                                            : static_cast<uint32_t>(header.clock % open_clocks);
}

// Under QUORUM, applies the pushes of the workers that ended the clock and drops all others. In
// other modes, applies the pushes of all workers.
void ServerTable::apply_clock() {
    ClockUpdate &update = update_;
    update.clock = clocks_.applied();
    update.divisor = clocks_.divisor(update.clock);
    update.sums.clear();
    if (!collects_apart(identity_.params))
        update.sums.push_back(static_cast<uint32_t>(update.clock % open_clocks));
    const uint32_t apart = collects_apart(identity_.params) ? identity_.workers : 0;
    for (uint32_t worker = 0; worker < apart; ++worker)
        if (identity_.params.consistency == DTRAIN_BSP || clocks_.took_part(worker, update.clock))
            update.sums.push_back(worker);
        else if (rows_ != nullptr)
            rows_->drop(worker);
        else
            shard_->drop(worker);
    const Reason reason = rows_ != nullptr ? rows_->apply(update) : shard_->apply(update);
    if (reason == Reason::told) note_broken(update.clock);
}

ServerTable::Answer ServerTable::stale(const RequestHeader &header) {
    ++members_[header.worker].counters.stale;
    return {Reason::stale, {header.clock, 0}};
}

Verdict ServerTable::may_pull(const RequestHeader &header) const {
    const Verdict verdict = clocks_.pull(header.clock);
    const bool plain = header.kind == RequestKind::pull || header.kind == RequestKind::pull_rows;
    if (verdict != Verdict::go || !plain || updates() >= header.argument) return verdict;
    return clocks_.next_update();
}

Verdict ServerTable::may_push(const RequestHeader &header) const {
    const Verdict verdict = clocks_.push(header.worker, header.clock);
    const bool in_order = identity_.params.reproducible == 0 ||
                          members_[header.worker].answered->in_order(header.sequence);
    return verdict == Verdict::go && !in_order ? Verdict::wait : verdict;
}

Verdict ServerTable::may_go_on(const RequestHeader &header) const {
    if (header.kind == RequestKind::save) return clocks_.cut(header.clock);
    if (header.kind != RequestKind::wait_ready) return may_pull(header);
    if (ready_) return Verdict::go;
    // A lost worker may have been the one that would have called set_ready.
    return clocks_.any_lost() ? Verdict::lost : Verdict::wait;
}

void ServerTable::release(Responses &out) {
    auto answered = [&](const Waiting &waiting) {
        const RequestHeader &header = waiting.header;
        Verdict verdict = may_go_on(header);
        if (verdict == Verdict::wait) return false;
        Answered::Entry &entry = members_[header.worker].answered->entry(header.sequence);
        if (header.kind == RequestKind::save)
            save(header, entry, out);
        else
            finish(header, entry, verdict == Verdict::go ? Answer{} : refusal(verdict, header),
                   out);
        return true;
    };
    auto asked_for = [&](const Waiting &waiting) {
        const RequestHeader &header = waiting.header;
        Answered::Entry &entry = members_[header.worker].answered->entry(header.sequence);
        const bool pulls = header.kind == RequestKind::pull_rows || entry.pushed;
        const bool clock = header.kind == RequestKind::clock;
        Verdict verdict = clock   ? clocks_.may_weigh(header.clock)
                          : pulls ? may_pull(header)
                                  : may_push(header);
        if (verdict == Verdict::wait) return false;
        entry.progress = Progress::unseen;
        respond(header, {Reason::resend, {0, 0}}, out);
        return true;
    };
    std::erase_if(parked_, answered);
    std::erase_if(held_, asked_for);
}

} // namespace dtrain::ps
