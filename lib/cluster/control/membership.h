// Which members are in a job and which are gone, as every member knows it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/host/names.h"

#include <map>
#include <vector>

namespace dtrain::cluster {

struct Membership {
    uint64_t job = 0;                   // random, the same on all members
    uint64_t epoch = 0;                 // number of changes of membership
    int32_t coordinator = 0;            // member
    std::vector<wire::Peer> peers;      // without transport addresses, which only programs need
    std::map<int32_t, wire::Gone> gone; // members gone for good

    int32_t size() const { return int32_t(peers.size()); }
    bool has(int32_t m) const { return m >= 0 && m < size(); }
    bool alive(int32_t m) const { return has(m) && !gone.contains(m); }
    int32_t alive_count() const { return size() - int32_t(gone.size()); }
    std::string name(int32_t m) const { return member_name(peers[size_t(m)]); }
    // silent: its process may still exist.
    wire::Gone lost(int32_t m, const std::string &why, bool silent,
                    Status status = DTRAIN_ERR_PEER) const {
        return {epoch + 1, m, false, name(m) + " lost: " + why, silent, false, status};
    }
    // moved: for the next generation of an elastic job.
    wire::Gone left(int32_t m, bool moved) const {
        return {epoch + 1, m, true, name(m) + " left the job", false, moved};
    }
};

} // namespace dtrain::cluster
