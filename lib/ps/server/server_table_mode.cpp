// Changes a table's mode: workers meet at a clock, and the change is made when the last has come.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/server_table.h"

#include <optional>

namespace dtrain::ps {

Answer ServerTable::check_mode(const RequestHeader &header, TableParams &wanted) const {
    take_mode(header.argument, wanted);
    uint32_t bad = first_bad_field(wanted);
    if (bad == field_count) bad = first_unfit_field(wanted, identity_.workers);
    if (bad != field_count) return {Reason::bad_parameter, {bad, 0}};
    const bool agreed = (header.argument & mode_only_asks) == 0; // the check was made before
    if (agreed) return {};
    const uint64_t needed = storage_->bytes_in_mode(wanted), held = storage_->bytes();
    if (needed > held && needed - held > room_)
        return {Reason::memory_limit, {needed - held, room_}};
    return {};
}

void ServerTable::set_mode(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    if ((header.argument & mode_refused) != 0) {
        end_meeting(mode_change_.refuse(header), out);
        return finish(header, entry, {}, out);
    }
    TableParams wanted = identity_.params;
    const Answer answer = check_mode(header, wanted);
    const bool only_asks = (header.argument & mode_only_asks) != 0;
    if (only_asks || answer.reason != Reason::none) return finish(header, entry, answer, out);
    if (const auto known = mode_change_.outcome(header)) return finish(header, entry, *known, out);
    if (header.clock < clocks_.finished(header.worker))
        return finish(header, entry, refusal(Verdict::passed, header), out);
    if ((header.argument & mode_decided) != 0) {
        change_mode(header);
        finish(header, entry, {Reason::none, {1, 0}}, out);
        return release(out);
    }
    const std::optional<RequestHeader> abandoned = mode_change_.ask(header);
    if (abandoned) finish_parked(*abandoned, {Reason::canceled}, out);
    entry.progress = Progress::parked;
    meet(out);
}

void ServerTable::end_meeting(const Answer &answer, Responses &out) {
    for (const RequestHeader &header : mode_change_.take_meeting())
        finish_parked(header, answer, out);
}

void ServerTable::meet(Responses &out) {
    const ModeChange::Decision decision = mode_change_.decide(members_, clocks_);
    if (decision.verdict == ModeChange::Decision::Verdict::wait) return;
    const bool change = decision.verdict == ModeChange::Decision::Verdict::change;
    if (change) change_mode(decision.request);
    end_meeting(decision.answer, out);
    if (change) release(out);
}

void ServerTable::change_mode(const RequestHeader &header) {
    apply_clocks();
    // A clock that not all workers have ended can be open only if a worker was lost or has ended
    // more clocks than others.
    const bool bsp = identity_.params.consistency == DTRAIN_BSP;
    for (uint64_t i = 0; bsp && i < open_clocks && clocks_.applied() < clocks_.highest(); ++i) {
        apply_clock();
        clocks_.advance();
    }
    mode_change_.made(header);
    take_mode(header.argument, identity_.params);
    clocks_.meet(mode_of(identity_.params), header.clock);
    if ((header.flags & without_lost) != 0) clocks_.forget_lost();
    for (Worker &worker : workers_) worker.rooms.end_all(storage_->sparse());
    storage_->set_mode(identity_.params);
}

} // namespace dtrain::ps
