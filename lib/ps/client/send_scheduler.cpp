// Holds channels, and lets the most urgent ones send first.
// SPDX-License-Identifier: Apache-2.0
#include "ps/client/send_scheduler.h"

#include "ps/client/request_channel.h"

#include <algorithm>

namespace dtrain::ps {

void SendScheduler::hold(uint32_t server, RequestChannel &channel) {
    std::vector<RequestChannel *> &held = servers_[server].held;
    if (std::find(held.begin(), held.end(), &channel) == held.end()) held.push_back(&channel);
}

void SendScheduler::forget(uint32_t server, const RequestChannel &channel) {
    std::erase(servers_[server].held, &channel);
}

void SendScheduler::pump(uint32_t server, RequestChannel &channel, int64_t now) {
    going_.swap(servers_[server].held);
    if (std::find(going_.begin(), going_.end(), &channel) == going_.end())
        going_.push_back(&channel);
    auto before = [](const RequestChannel *a, const RequestChannel *b) {
        return a->urgency() > b->urgency();
    };
    std::stable_sort(going_.begin(), going_.end(), before);
    for (RequestChannel *next : going_) next->pump(now);
    going_.clear();
}

} // namespace dtrain::ps
