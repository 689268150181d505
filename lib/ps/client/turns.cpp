// Holds lanes, and lets the most urgent ones send first.
// SPDX-License-Identifier: Apache-2.0
#include "ps/client/turns.h"

#include "ps/client/lane.h"

#include <algorithm>

namespace dtrain::ps {

void Turns::hold(uint32_t server, Lane &lane) {
    std::vector<Lane *> &held = servers_[server].held;
    if (std::find(held.begin(), held.end(), &lane) == held.end()) held.push_back(&lane);
}

void Turns::forget(uint32_t server, const Lane &lane) { std::erase(servers_[server].held, &lane); }

void Turns::pump(uint32_t server, Lane &lane, int64_t now) {
    going_.swap(servers_[server].held);
    if (std::find(going_.begin(), going_.end(), &lane) == going_.end()) going_.push_back(&lane);
    auto before = [](const Lane *a, const Lane *b) { return a->urgency() > b->urgency(); };
    std::stable_sort(going_.begin(), going_.end(), before);
    for (Lane *next : going_) next->pump(now);
    going_.clear();
}

} // namespace dtrain::ps
