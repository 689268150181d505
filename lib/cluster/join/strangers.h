// Which incoming connections have not proven themselves yet, and which of them gives way.
// SPDX-License-Identifier: Apache-2.0
//
// A genuine process says who it is as soon as it is connected, so a flood of connections that say
// nothing must not push it out: the oldest of the silent ones gives way first. There are at least
// as many places as the job has members, which therefore never push out each other.
#pragma once
#include "cluster/control/protocol.h"
#include "wire/limits.h"

#include <algorithm>
#include <vector>

namespace dtrain::cluster {

class Strangers {
  public:
    explicit Strangers(size_t members) : places_(std::max(members, wire::min_strangers)) {}

    void add(Link link) { silent_.push_back(link); } // the newest: numbers ascend
    void introduced(Link link) {
        if (erase(silent_, link)) spoken_.insert(std::ranges::upper_bound(spoken_, link), link);
    }
    void remove(Link link) { // if it is one of them
        if (!erase(silent_, link)) erase(spoken_, link);
    }
    void clear() {
        silent_.clear();
        spoken_.clear();
    }
    bool full() const { return silent_.size() + spoken_.size() >= places_; }
    // The one that gives way to the next one. 0: there is nobody.
    Link to_give_way() const { return !silent_.empty() ? silent_.front() : first(spoken_); }
    // The oldest one, whose time is over first.
    Link oldest() const {
        const Link a = first(silent_), b = first(spoken_);
        return a == 0 || b == 0 ? a + b : std::min(a, b);
    }
    Link oldest_silent() const { return first(silent_); }

  private:
    using Links = std::vector<Link>; // oldest first
    static Link first(const Links &links) { return links.empty() ? 0 : links.front(); }
    static bool erase(Links &links, Link link) {
        const auto at = std::ranges::lower_bound(links, link);
        if (at == links.end() || *at != link) return false;
        links.erase(at);
        return true;
    }
    size_t places_;
    Links silent_, spoken_;
};

} // namespace dtrain::cluster
