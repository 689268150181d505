// Keeps the list of waiting newcomers.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/newcomers.h"

#include "cluster/host/names.h"

#include <algorithm>

namespace dtrain::cluster {

Status Newcomers::add(Link link, const std::string &remote, const wire::Join &join, int64_t now) {
    if (join.version_min > wire::control_version || join.version_max < wire::control_version)
        return fail(
            DTRAIN_ERR_VERSION,
            "it speaks control protocol %u to %u, the job %u; use one dtrain version in all "
            "processes",
            join.version_min, join.version_max, wire::control_version);
    if (waiting_.size() >= wire::max_newcomers)
        return fail(DTRAIN_ERR_LIMIT, "%zu processes wait already to be taken in", waiting_.size());
    waiting_[link] = {{link, join.self.role != 0,
                       text("%s pid %d", remote.empty() ? "local" : remote.c_str(), join.self.pid)},
                      now};
    return DTRAIN_OK;
}

void Newcomers::heard(Link link, int64_t now) {
    if (auto at = waiting_.find(link); at != waiting_.end()) at->second.heard = now;
}

std::vector<Link> Newcomers::take_silent(const Pace &pace, int64_t now) {
    std::vector<Link> silent;
    for (const auto &[link, one] : waiting_)
        if (now - one.heard >= pace.timeout) silent.push_back(link);
    for (Link link : silent) waiting_.erase(link);
    return silent;
}

int64_t Newcomers::next_deadline(const Pace &pace) const {
    int64_t next = INT64_MAX;
    for (const auto &[link, one] : waiting_) next = std::min(next, one.heard + pace.timeout);
    return next;
}

std::vector<Newcomer> Newcomers::all() const {
    std::vector<Newcomer> out;
    for (const auto &[link, one] : waiting_) out.push_back(one.who);
    return out;
}

} // namespace dtrain::cluster
