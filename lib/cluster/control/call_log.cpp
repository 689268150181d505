// Compares the calls that ranks report, and decides which members to ask or to tell.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/call_log.h"

#include "cluster/control/calls.h"
#include "cluster/host/names.h"

#include <algorithm>
#include <utility>

namespace dtrain::cluster {
namespace {

// Finds the first call with equal numbers that differs; both lists are ascending.
std::string difference(int32_t rank, const std::vector<CallRecord> &mine, int32_t other,
                       const std::vector<CallRecord> &theirs, uint64_t &number) {
    auto b = theirs.begin();
    for (const CallRecord &a : mine) {
        while (b != theirs.end() && b->seq < a.seq) ++b;
        if (b == theirs.end()) break;
        if (b->seq != a.seq || *b == a) continue;
        number = a.seq;
        return text("call %llu: rank %d %s, rank %d %s", static_cast<unsigned long long>(a.seq),
                    rank, describe(a).c_str(), other, describe(*b).c_str());
    }
    return {};
}

} // namespace

CallLog::Outcome CallLog::report(int32_t member, const wire::Calls &report) {
    const std::vector<int32_t> &members = report.members;
    auto rank = int32_t(std::find(members.begin(), members.end(), member) - members.begin());
    Group &group = group_of(report.group);
    Entry &mine = group.entries[rank];
    const uint64_t before = mine.last();
    const bool again = mine.stalled && !mine.calls.empty();
    mine = {report.stalled, false, report.calls};
    const bool insists = again && mine.stalled && mine.last() == before;

    Outcome out;
    out.stuck = nothing_moves(group, rank, report);
    for (const auto &[other, entry] : group.entries)
        if (other != rank && out.mismatch.empty())
            out.mismatch = difference(rank, mine.calls, other, entry.calls, out.differs);
    if (!out.mismatch.empty()) return out;

    for (int32_t r = 0; r < int32_t(members.size()); r++) {
        if (r == rank) continue;
        Entry &other = group.entries[r];
        if (mine.stalled && other.last() < mine.last() && (insists || !other.asked)) {
            other.asked = true;
            out.wanted.push_back(members[size_t(r)]);
        }
        if (other.stalled && mine.last() < other.last())
            out.behind.push_back({members[size_t(r)], rank, mine.last()});
    }
    return out;
}

// A rank that continues does not report again, so all ranks have to report being stuck twice: after
// the first time, each was asked again.
bool CallLog::nothing_moves(Group &group, int32_t rank, const wire::Calls &report) {
    if (!report.stuck) {
        if (report.stalled) { // otherwise it only answered a request for its calls
            group.stuck.clear();
            group.all_were_stuck = false;
        }
        return false;
    }
    group.stuck.insert(rank);
    if (group.stuck.size() < report.members.size()) return false;
    group.stuck.clear();
    return std::exchange(group.all_were_stuck, true);
}

CallLog::Group &CallLog::group_of(uint64_t group) {
    if (groups_.size() >= max_groups && !groups_.contains(group))
        groups_.erase(
            std::min_element(groups_.begin(), groups_.end(), [](const auto &a, const auto &b) {
                return a.second.used < b.second.used;
            }));
    Group &g = groups_[group];
    g.used = ++turn_;
    return g;
}

} // namespace dtrain::cluster
