// The processes that wait at the coordinator until the members of an elastic job take them in.
// SPDX-License-Identifier: Apache-2.0
//
// A newcomer is on a connection of its own and has no member number. It sends heartbeats: one that
// is silent is dropped, so that the next generation does not wait for it.
#pragma once
#include "cluster/control/pace.h"
#include "cluster/control/protocol.h"

#include <map>
#include <string>
#include <vector>

namespace dtrain::cluster {

struct Newcomer {
    Link link = 0;
    bool server = false;
    std::string label; // "10.0.0.4 pid 991", for texts
};

class Newcomers {
  public:
    // DTRAIN_ERR_VERSION or _LIMIT, with this thread's error text, if it cannot wait here. remote:
    // its address without a port.
    Status add(Link link, const std::string &remote, const wire::Join &join, int64_t now);
    bool has(Link link) const { return waiting_.contains(link); }
    void heard(Link link, int64_t now);
    // Returns whether it was here.
    bool remove(Link link) { return waiting_.erase(link) > 0; }
    // Those that were silent for longer than the pace allows; they are removed.
    std::vector<Link> take_silent(const Pace &pace, int64_t now);
    int64_t next_deadline(const Pace &pace) const;

    uint32_t count() const { return uint32_t(waiting_.size()); }
    std::vector<Newcomer> all() const; // in the order in which they came

  private:
    struct Waiting {
        Newcomer who;
        int64_t heard = 0;
    };
    std::map<Link, Waiting> waiting_; // accepted links ascend
};

} // namespace dtrain::cluster
