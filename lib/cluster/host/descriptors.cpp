// Estimates the file descriptors that a process needs in its job.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/host/descriptors.h"

#include "base/fd.h"

#include <algorithm>
#include <bit>
#include <sys/resource.h>

namespace dtrain::cluster {
namespace {

constexpr uint64_t per_peer = 2; // shared memory: a socket in each direction
constexpr uint64_t most_window_members = 64;
constexpr uint64_t spare = 8; // windows, files, short-lived descriptors

using Count = unsigned long long;

} // namespace

DescriptorNeed DescriptorNeed::of(const Identity &identity) {
    const auto members = uint64_t(identity.members());
    if (members < 2) return {};
    // The coordinator has a control connection to every member, the others one to it; each listens.
    const bool coordinates = identity.member() == 0;
    const uint64_t control = coordinates ? members : 2;
    // Connections to pass the window memory that all ranks on a host share.
    const uint64_t window = coordinates ? std::min(members - 1, most_window_members) : 1;
    const auto tree = uint64_t(std::bit_width(members - 1)); // peers of a rank in a binomial tree
    const uint64_t most = control + per_peer * (members - 1) + spare;
    return {std::min(most, control + window + per_peer * tree + spare), most};
}

DescriptorRoom DescriptorRoom::now() {
    rlimit limits{};
    getrlimit(RLIMIT_NOFILE, &limits);
    DescriptorRoom room{0, limits.rlim_cur, limits.rlim_max};
    if (const Folder folder = open_folder("/proc/self/fd")) {
        while (const dirent *entry = readdir(folder.get())) room.open += entry->d_name[0] != '.';
        room.open--; // the descriptor of the folder itself
    }
    return room;
}

Status check_descriptors(const Identity &identity, const DescriptorRoom &room, Log &log) {
    const DescriptorNeed need = DescriptorNeed::of(identity);
    if (room.open + need.least > room.limit)
        return fail(DTRAIN_ERR_LIMIT,
                    "too few file descriptors for a job of %d processes: %llu are open, at least "
                    "%llu more are needed, and ulimit -n is %llu; raise it to %llu (the hard limit "
                    "is %llu)",
                    identity.members(), Count(room.open), Count(need.least), Count(room.limit),
                    Count(room.open + need.most), Count(room.hard_limit));
    if (identity.member() == 0 && room.open + need.most > room.limit)
        log.write(DTRAIN_LOG_WARN,
                  "ulimit -n is %llu, which may be too few file descriptors for a job of %d "
                  "processes: calls in which all ranks send to all (all-to-all) need up to %llu",
                  Count(room.limit), identity.members(), Count(room.open + need.most));
    return DTRAIN_OK;
}

} // namespace dtrain::cluster
