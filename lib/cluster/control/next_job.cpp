// Finds a process's place in the list of the next generation's members.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/next_job.h"

namespace dtrain::cluster {
namespace {

constexpr int32_t newcomer = wire::Moved::newcomer;

void count_from_earlier(const std::vector<int32_t> &earlier, std::vector<int32_t> &later) {
    for (int32_t &member : later)
        if (member != newcomer)
            member = size_t(member) < earlier.size() ? earlier[size_t(member)] : newcomer;
}

} // namespace

// Newcomers are numbered as the coordinator has listed them: workers, then servers.
NextJob next_job(const Identity &own, const wire::Moved &moved) {
    NextJob next;
    Identity &id = next.identity;
    id = own;
    id.newcomer = false;
    id.workers = int32_t(moved.workers.size());
    id.servers = int32_t(moved.servers.size());
    id.generation = moved.generation;
    if (id.door.empty()) id.door = own.rendezvous;
    id.rendezvous = "at:" + moved.place;
    id.listen_fd = -1;
    int32_t news = 0;
    auto look = [&](const std::vector<int32_t> &places, Role role) {
        for (size_t i = 0; i < places.size(); i++) {
            const bool found = places[i] == newcomer
                                   ? moved.number == news++
                                   : moved.number < 0 && places[i] == own.member();
            if (!found) continue;
            next.stays = true;
            id.role = role;
            id.index = int32_t(i);
        }
    };
    look(moved.workers, Role::worker);
    look(moved.servers, Role::server);
    next.came = moved.came;
    next.went = moved.went;
    next.workers = moved.workers;
    next.servers = moved.servers;
    return next;
}

void add_changes(const NextJob &earlier, NextJob &later) {
    // A server is numbered after the workers of its generation.
    std::vector<int32_t> members = earlier.workers;
    members.insert(members.end(), earlier.servers.begin(), earlier.servers.end());
    count_from_earlier(members, later.workers);
    count_from_earlier(members, later.servers);
    later.came.insert(later.came.begin(), earlier.came.begin(), earlier.came.end());
    later.went.insert(later.went.begin(), earlier.went.begin(), earlier.went.end());
}

} // namespace dtrain::cluster
