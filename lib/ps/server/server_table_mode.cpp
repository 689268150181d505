// Changes a table's mode: workers meet at a clock, and the change is made when the last has come.
// SPDX-License-Identifier: Apache-2.0
//
// Before, each worker has asked every server whether the change is possible, and the workers have
// agreed among themselves. A worker that has not heard from all others refuses, and the change is
// not made. A worker that is lost may have agreed or refused on some servers only. A server that
// has not heard from it does not make the change and says so; a server that has heard from all
// makes it. The remaining workers get the answers of all servers, so they know the decision: if one
// server has made the change, they tell the other servers to make it, too (mode_decided).
#include "ps/server/server_table.h"

#include <algorithm>
#include <utility>

namespace dtrain::ps {

ServerTable::Answer ServerTable::check_mode(const RequestHeader &header,
                                            TableParams &wanted) const {
    take_mode(header.argument, wanted);
    uint32_t bad = first_bad_field(wanted);
    if (bad == field_count) bad = first_unfit_field(wanted, identity_.workers);
    if (bad != field_count) return {Reason::bad_parameter, {bad, 0}};
    const bool agreed = (header.argument & mode_only_asks) == 0; // the check was made before
    if (rows_ != nullptr || agreed) return {}; // the limit for rows applies when they are made
    const uint64_t needed = Shard::bytes_needed(wanted, shard_->part().count(), identity_.workers);
    if (needed > bytes_ && needed - bytes_ > room_)
        return {Reason::memory_limit, {needed - bytes_, room_}};
    return {};
}

void ServerTable::set_mode(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    if ((header.argument & mode_refused) != 0) return refuse_mode(header, entry, out);
    TableParams wanted = identity_.params;
    const Answer answer = check_mode(header, wanted);
    const bool only_asks = (header.argument & mode_only_asks) != 0;
    if (only_asks || answer.reason != Reason::none) return finish(header, entry, answer, out);
    if (header.pushes <= changed_) return finish(header, entry, {Reason::none, {1, 0}}, out);
    if (header.pushes <= refused_change_)
        return finish(header, entry, {Reason::mode_not_agreed, {refuser_, 0}}, out);
    if (header.clock < clocks_.finished(header.worker))
        return finish(header, entry, refusal(Verdict::passed, header), out);
    if ((header.argument & mode_decided) != 0) {
        change_mode(header);
        finish(header, entry, {Reason::none, {1, 0}}, out);
        return release(out);
    }
    members_[header.worker].agreed = header.pushes;
    auto earlier = [&](const RequestHeader &other) { return other.worker == header.worker; };
    const auto old = std::find_if(meeting_.begin(), meeting_.end(), earlier);
    if (old != meeting_.end()) { // the worker has abandoned its earlier request
        const RequestHeader given_up = *old;
        meeting_.erase(old);
        answer_meeting(given_up, {Reason::canceled}, out);
    }
    entry.progress = Progress::parked;
    meeting_.push_back(header);
    meet(out);
}

void ServerTable::refuse_mode(const RequestHeader &header, Answered::Entry &entry, Responses &out) {
    if (header.pushes > refused_change_) {
        refused_change_ = header.pushes;
        refuser_ = header.worker;
    }
    end_meeting({Reason::mode_not_agreed, {refuser_, 0}}, out);
    finish(header, entry, {}, out);
}

void ServerTable::answer_meeting(const RequestHeader &header, const Answer &answer,
                                 Responses &out) {
    finish(header, members_[header.worker].answered->entry(header.sequence), answer, out);
}

void ServerTable::end_meeting(const Answer &answer, Responses &out) {
    const std::vector<RequestHeader> met = std::exchange(meeting_, {});
    for (const RequestHeader &header : met) answer_meeting(header, answer, out);
}

void ServerTable::meet(Responses &out) {
    if (meeting_.empty()) return;
    const RequestHeader first = meeting_.front();
    const bool all_count = (first.flags & without_lost) == 0;
    for (uint32_t worker = 0; worker < members_.size() && all_count; ++worker)
        if (members_[worker].lost && members_[worker].agreed < first.pushes)
            return end_meeting({Reason::worker_lost, {worker, clocks_.finished(worker)}}, out);
    if (meeting_.size() < present_) return;
    auto agrees = [&](const RequestHeader &other) {
        return other.argument == first.argument && other.clock == first.clock &&
               ((other.flags ^ first.flags) & without_lost) == 0;
    };
    const bool agreed = std::all_of(meeting_.begin(), meeting_.end(), agrees);
    if (agreed) change_mode(first);
    end_meeting(agreed ? Answer{Reason::none, {1, 0}}
                       : Answer{Reason::clock_changed, {first.clock, 0}},
                out);
    release(out);
}

void ServerTable::change_mode(const RequestHeader &header) {
    // A clock that not all workers have ended can be open only if a worker was lost or has ended
    // more clocks than others.
    const bool bsp = identity_.params.consistency == DTRAIN_BSP;
    for (uint64_t i = 0; bsp && i < open_clocks && clocks_.applied() < clocks_.highest(); ++i) {
        apply_clock();
        clocks_.advance();
    }
    changed_ = header.pushes;
    take_mode(header.argument, identity_.params);
    clocks_.meet(mode_of(identity_.params), header.clock);
    if ((header.flags & without_lost) != 0) clocks_.forget_lost();
    if (rows_ != nullptr) {
        for (Member &member : members_) end_keeping(member);
        rows_->set_mode(identity_.params);
    } else {
        shard_->set_mode(identity_.params);
        bytes_ = dense_bytes(shard_.get());
    }
}

} // namespace dtrain::ps
