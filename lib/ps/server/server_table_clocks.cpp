// How requests wait for clocks, and what happens when clocks end.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/server_table.h"

#include <bit>

namespace dtrain::ps {

void ServerTable::clock(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    // A clock with an invalid weight ends without it, so that other workers do not wait forever.
    const bool fit = weight_fits(identity_.params, header);
    const Weight weight = {std::bit_cast<double>(header.argument), (header.flags & weighted) != 0};
    const Verdict verdict =
        clocks_.announce(header.worker, header.clock, header.pushes, fit ? weight : Weight{});
    if (verdict == Verdict::wait) return hold(header, entry, out);
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

void ServerTable::hold(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    if (entry.progress == Progress::held) return tell_awaited(header, out); // still too early
    ++workers_[header.worker].counters.dropped;
    waiting_.hold(header, entry, peers_[header.worker]);
}

std::optional<uint32_t> ServerTable::awaited(const RequestHeader &header) const {
    if (waits_for_device(header.kind)) return std::nullopt;
    if (header.kind == RequestKind::set_mode) return mode_change_.absent(members_);
    const bool pulls = has_trait(header.kind, Trait::receives);
    const bool by_clocks = identity_.params.consistency != DTRAIN_ASYNC &&
                           header.kind != RequestKind::wait_ready &&
                           (!pulls || clocks_.pull(header.clock) == Verdict::wait);
    return by_clocks ? clocks_.slowest_before(header.clock) : std::nullopt;
}

void ServerTable::tell_awaited(const RequestHeader &header, Responses &out) {
    const std::optional<uint32_t> worker = awaited(header);
    if (worker && *worker != header.worker)
        respond(header, {Reason::waits, {*worker, clocks_.finished(*worker)}}, out);
}

void ServerTable::cancel(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    if (entry.progress == Progress::done) return respond(header, {}, out);
    waiting_.forget(header.worker, header.sequence);
    bool push = (header.flags & counted_push) != 0 && !entry.pushed;
    Verdict verdict = push ? clocks_.push(header.worker, header.clock) : Verdict::passed;
    if (verdict == Verdict::go || verdict == Verdict::wait || verdict == Verdict::lost)
        clocks_.count_push(header.worker, header.clock);
    finish(header, entry, {Reason::canceled, {0, 0}}, out);
    settle(out);
}

void ServerTable::settle(Responses &out) {
    clock_waits_ = false;
    if (collects(identity_.params))
        for (; clocks_.ready() && may_apply(); release(out)) {
            apply_clock();
            clocks_.advance();
        }
    release(out);
}

void ServerTable::apply_clocks() {
    for (; collects(identity_.params) && clocks_.ready(); clocks_.advance()) apply_clock();
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
        else
            storage_->drop(worker);
    if (storage_->apply(update) != Reason::told || broken_.status != DTRAIN_OK) return;
    broken_.status = storage_->failure().status;
    broken_.text = "the update of clock " + std::to_string(update.clock) +
                   " was only partly applied; restore a checkpoint: " + storage_->failure().text;
}

Answer ServerTable::stale(const RequestHeader &header) {
    ++workers_[header.worker].counters.stale;
    return {Reason::stale, {header.clock, 0}};
}

Verdict ServerTable::may_pull(const RequestHeader &header) const {
    const Verdict verdict = clocks_.pull(header.clock);
    const bool plain = header.kind == RequestKind::pull || header.kind == RequestKind::pull_rows;
    if (verdict != Verdict::go || !plain || storage_->updates() >= header.argument) return verdict;
    return clocks_.next_update();
}

Verdict ServerTable::may_push(const RequestHeader &header) const {
    const Verdict verdict = clocks_.push(header.worker, header.clock);
    const bool in_order =
        identity_.params.reproducible == 0 || workers_[header.worker].log.in_order(header.sequence);
    return verdict == Verdict::go && !in_order ? Verdict::wait : verdict;
}

Verdict ServerTable::may_go_on(const RequestHeader &header) const {
    if (header.kind == RequestKind::save) return clocks_.cut(header.clock);
    if (header.kind != RequestKind::wait_ready) return may_pull(header);
    if (ready_) return Verdict::go;
    // A lost worker may have been the one that would have called set_ready.
    return clocks_.any_lost() ? Verdict::lost : Verdict::wait;
}

Answer ServerTable::refusal(Verdict verdict, const RequestHeader &header) const {
    uint32_t lost = clocks_.lost_worker();
    switch (verdict) {
    case Verdict::lost:
        if (clocks_.mode().quorum > 0) return {Reason::quorum_lost, {lost, clocks_.mode().quorum}};
        return {members_.why_lost(lost), {lost, clocks_.finished(lost)}};
    case Verdict::passed: return {Reason::clock_passed, {header.clock, clocks_.applied()}};
    default:
        if (has_trait(header.kind, Trait::receives) && !has_trait(header.kind, Trait::pushes))
            return {Reason::version_ahead, {storage_->updates(), header.argument}};
        return {Reason::clock_ahead, {header.clock, clocks_.finished(header.worker)}};
    }
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

void ServerTable::release(Responses &out) {
    auto answered = [&](const RequestHeader &header) {
        Verdict verdict = may_go_on(header);
        if (verdict == Verdict::wait) return false;
        Answered::Entry &entry = workers_[header.worker].log.entry(header.sequence);
        if (header.kind == RequestKind::save)
            save(header, entry, out);
        else
            finish(header, entry, verdict == Verdict::go ? Answer{} : refusal(verdict, header),
                   out);
        return true;
    };
    auto asked_for = [&](const RequestHeader &header) {
        if (waits_for_device(header.kind)) return false;
        Answered::Entry &entry = workers_[header.worker].log.entry(header.sequence);
        const bool pulls = header.kind == RequestKind::pull_rows || entry.pushed;
        const bool clock = header.kind == RequestKind::clock;
        const bool any_clock = need_of(header.kind) && header.kind != RequestKind::set_rate &&
                               !has_trait(header.kind, Trait::pushes);
        Verdict verdict = clock       ? clocks_.may_weigh(header.clock)
                          : any_clock ? Verdict::go
                          : pulls     ? may_pull(header)
                                      : may_push(header);
        if (verdict == Verdict::wait) return false;
        entry.progress = Progress::unseen;
        respond(header, {Reason::resend, {0, 0}}, out);
        return true;
    };
    waiting_.visit_parked(answered);
    waiting_.visit_held(asked_for);
}

} // namespace dtrain::ps
