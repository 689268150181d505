// The members that have come so far, until the job is complete.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/control/protocol.h"

#include <map>
#include <string>
#include <vector>

namespace dtrain::cluster {

// DTRAIN_ERR_CONFIG unless it checks messages and results as the coordinator does.
Status check_verify(const wire::Join &join, uint32_t coordinators);

class JoinRoster {
  public:
    // verify: of the coordinator, as in wire::Peer.
    JoinRoster(int32_t workers, int32_t servers, uint32_t verify);

    // Admits a member. DTRAIN_ERR_CONFIG or _VERSION, with this thread's error text, if it cannot
    // be admitted. remote: its address without a port ("": this process). hopeless: no other
    // process that was started in the same way can be admitted either, so its seat stays empty.
    Status admit(int32_t member, const std::string &remote, const wire::Join &join, bool &hopeless);
    // A process could not join. `member`: the number that it claimed (-1: unknown).
    void turned_away(int32_t member, const std::string &remote, const std::string &why);

    bool complete() const { return joined_ == seats_.size(); }
    bool has(int32_t member) const { return seats_[size_t(member)].here; }
    const wire::Peer &peer(int32_t member) const { return seats_[size_t(member)].peer; }
    std::vector<wire::Peer> take_members(); // in order; only once complete
    // "6 of 8 joined (ranks 0-3,6 and server 1); missing rank 4 (never seen), rank 5 (seen from
    // 10.0.0.5, refused: wrong secret)"
    std::string state() const;

  private:
    struct Seat {
        bool here = false;
        wire::Peer peer;
        std::string remark; // why it is not here
    };
    int32_t workers_, servers_;
    uint32_t verify_;
    std::vector<Seat> seats_;
    size_t joined_ = 0;
    size_t strangers_ = 0;
    std::string last_stranger_;
};

} // namespace dtrain::cluster
