// The rules of the meeting in which workers change a table's mode.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/mode_change.h"

#include <algorithm>

namespace dtrain::ps {

std::optional<Answer> ModeChange::outcome(const RequestHeader &header) const {
    if (header.pushes <= made_) return Answer{Reason::none, {1, 0}};
    if (header.pushes <= refused_) return Answer{Reason::mode_not_agreed, {refuser_, 0}};
    return std::nullopt;
}

std::optional<RequestHeader> ModeChange::ask(const RequestHeader &header) {
    agreed_[header.worker] = header.pushes;
    std::optional<RequestHeader> abandoned;
    auto earlier = [&](const RequestHeader &other) { return other.worker == header.worker; };
    const auto old = std::find_if(meeting_.begin(), meeting_.end(), earlier);
    if (old != meeting_.end()) {
        abandoned = *old;
        meeting_.erase(old);
    }
    meeting_.push_back(header);
    return abandoned;
}

Answer ModeChange::refuse(const RequestHeader &header) {
    if (header.pushes > refused_) {
        refused_ = header.pushes;
        refuser_ = header.worker;
    }
    return {Reason::mode_not_agreed, {refuser_, 0}};
}

std::optional<uint32_t> ModeChange::absent(const Membership &members) const {
    for (uint32_t worker = 0; worker < members.size(); ++worker) {
        auto its = [&](const RequestHeader &header) { return header.worker == worker; };
        if (members.present(worker) && std::none_of(meeting_.begin(), meeting_.end(), its))
            return worker;
    }
    return std::nullopt;
}

ModeChange::Decision ModeChange::decide(const Membership &members, const Clocks &clocks) const {
    if (meeting_.empty()) return {};
    const RequestHeader &first = meeting_.front();
    const bool all_count = (first.flags & without_lost) == 0;
    for (uint32_t worker = 0; worker < members.size() && all_count; ++worker)
        if (members.lost(worker) && agreed_[worker] < first.pushes)
            return {Decision::Verdict::refuse,
                    {members.why_lost(worker), {worker, clocks.finished(worker)}},
                    first};
    if (meeting_.size() < members.count()) return {};
    auto other_mode = [&](const RequestHeader &its) { return its.argument != first.argument; };
    const auto other = std::find_if(meeting_.begin(), meeting_.end(), other_mode);
    if (other != meeting_.end())
        return {Decision::Verdict::refuse,
                {Reason::modes_differ, {first.argument, other->argument}},
                first};
    auto differs = [&](const RequestHeader &its) {
        return its.clock != first.clock || ((its.flags ^ first.flags) & without_lost) != 0;
    };
    if (std::any_of(meeting_.begin(), meeting_.end(), differs))
        return {Decision::Verdict::refuse, {Reason::clock_changed, {first.clock, 0}}, first};
    return {Decision::Verdict::change, {Reason::none, {1, 0}}, first};
}

} // namespace dtrain::ps
