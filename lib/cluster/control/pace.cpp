// Computes heartbeat times from the options and from how crowded the hosts are.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/pace.h"

#include "cluster/host/names.h"

#include <algorithm>
#include <map>
#include <utility>

namespace dtrain::cluster {
namespace {

constexpr double members_to_double = 8; // this many more per core need twice as long
constexpr double most_patience = 4;
constexpr int64_t usual_leaving = 20 * ms;

// The largest number of members per core on any machine.
double most_crowded(std::span<const wire::Peer> peers) {
    struct Crowd {
        uint32_t members = 0, cores = UINT32_MAX; // cores in thousandths
    };
    std::map<std::pair<std::string_view, uint64_t>, Crowd> crowds; // by host and CPUs
    for (const wire::Peer &peer : peers) {
        Crowd &crowd = crowds[{peer.host, peer.cpus}];
        crowd.members++;
        if (peer.cores > 0) crowd.cores = std::min(crowd.cores, peer.cores);
    }
    double most = 0;
    for (const auto &[where, crowd] : crowds)
        if (crowd.cores != UINT32_MAX) most = std::max(most, 1000.0 * crowd.members / crowd.cores);
    return most;
}

} // namespace

Pace Pace::of(const Settings &settings, std::span<const wire::Peer> peers) {
    const double more = (most_crowded(peers) - 1) / members_to_double;
    const double factor = std::clamp(1 + more, 1.0, most_patience);
    return {int64_t(double(settings.heartbeat_interval) * factor),
            int64_t(double(settings.heartbeat_timeout) * factor),
            int64_t(double(usual_leaving) * factor)};
}

Pace Pace::of_joining(const Settings &settings) {
    Pace pace = of(settings, {});
    pace.timeout = int64_t(double(pace.timeout) * most_patience);
    return pace;
}

std::string Pace::silence(int64_t ns) const {
    return text("silent for %lld ms (option heartbeat.timeout: %lld ms)",
                static_cast<long long>(ns / ms), static_cast<long long>(timeout / ms));
}

} // namespace dtrain::cluster
