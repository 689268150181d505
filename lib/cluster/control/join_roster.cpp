// Checks each process that joins, and describes which members are missing.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/join_roster.h"

#include "cluster/host/names.h"

namespace dtrain::cluster {
namespace {

using wire::control_version;

Status check_size(const wire::Join &join, int32_t workers, int32_t servers) {
    if (join.version_min > control_version || join.version_max < control_version)
        return fail(DTRAIN_ERR_VERSION,
                    "it speaks control protocol %u to %u, the coordinator %u; use one dtrain "
                    "version in all processes",
                    join.version_min, join.version_max, control_version);
    if (join.workers != workers || join.servers != servers)
        return fail(DTRAIN_ERR_CONFIG,
                    "it expects %d workers and %d servers, rank 0 expects %d and %d; start all "
                    "processes with the same numbers",
                    join.workers, join.servers, workers, servers);
    return DTRAIN_OK;
}

// wire::Peer's member in words.
std::string options_of(uint32_t verify) {
    return verify == 0 ? "option verify=no"
                       : text("options verify=yes verify.results=%u", verify - 1);
}

} // namespace

Status check_verify(const wire::Join &join, uint32_t coordinators) {
    if (join.self.verify == coordinators) return DTRAIN_OK;
    return fail(DTRAIN_ERR_CONFIG, "it has %s, rank 0 has %s; set them alike in all processes",
                options_of(join.self.verify).c_str(), options_of(coordinators).c_str());
}

JoinRoster::JoinRoster(int32_t workers, int32_t servers, uint32_t verify)
    : workers_(workers), servers_(servers), verify_(verify),
      seats_(size_t(workers) + size_t(servers)) {}

Status JoinRoster::admit(int32_t member, const std::string &remote, const wire::Join &join,
                         bool &hopeless) {
    const wire::Peer &peer = join.self;
    Status s = check_size(join, workers_, servers_);
    if (s == DTRAIN_OK) s = check_verify(join, verify_);
    int32_t limit = peer.role == 0 ? workers_ : servers_;
    int32_t claimed = peer.role == 0 ? peer.index : workers_ + peer.index;
    if (s == DTRAIN_OK && (peer.index >= limit || claimed != member))
        s = fail(DTRAIN_ERR_CONFIG, "%s %d is not one of 0 to %d",
                 peer.role == 0 ? "rank" : "server", peer.index, limit - 1);
    hopeless = s != DTRAIN_OK && (size_t(member) >= seats_.size() || !seats_[size_t(member)].here);
    if (s == DTRAIN_OK && seats_[size_t(member)].here)
        s = fail(DTRAIN_ERR_CONFIG,
                 "%s has joined already, and pid %d has the same number; start each number once",
                 member_name(seats_[size_t(member)].peer).c_str(), peer.pid);
    if (s != DTRAIN_OK) {
        turned_away(member, remote, error_text());
        return s;
    }
    Seat &seat = seats_[size_t(member)];
    seat.here = true;
    seat.peer = peer;
    seat.peer.label =
        text("%s pid %d", remote.empty() ? "rank 0's process," : remote.c_str(), peer.pid);
    seat.remark.clear();
    joined_++;
    return DTRAIN_OK;
}

void JoinRoster::turned_away(int32_t member, const std::string &remote, const std::string &why) {
    std::string remark = text("seen from %s, refused: %s", remote.c_str(), why.c_str());
    if (member >= 0 && size_t(member) < seats_.size() && !seats_[size_t(member)].here) {
        seats_[size_t(member)].remark = remark;
        return;
    }
    strangers_++;
    last_stranger_ = remark;
}

std::vector<wire::Peer> JoinRoster::take_members() {
    std::vector<wire::Peer> members;
    for (Seat &seat : seats_) members.push_back(std::move(seat.peer));
    return members;
}

std::string JoinRoster::state() const {
    std::vector<int32_t> here;
    std::string missing;
    size_t unnamed = 0;
    for (size_t i = 0; i < seats_.size(); i++) {
        const Seat &seat = seats_[i];
        if (seat.here)
            here.push_back(int32_t(i));
        else if (missing.size() > 200)
            unnamed++;
        else
            missing += (missing.empty() ? "" : ", ") + member_name(int32_t(i), workers_) + " (" +
                       (seat.remark.empty() ? "never seen" : seat.remark) + ")";
    }
    std::string out = text("%zu of %zu joined (%s); missing %s", joined_, seats_.size(),
                           member_list(here, workers_).c_str(), missing.c_str());
    if (unnamed > 0) out += text(" and %zu more", unnamed);
    if (strangers_ > 0)
        out +=
            text("; %zu others turned away, the last one %s", strangers_, last_stranger_.c_str());
    return out;
}

} // namespace dtrain::cluster
