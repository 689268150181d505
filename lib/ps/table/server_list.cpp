// Numbers the members of a job that serve.
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/server_list.h"

#include "cluster/session/session.h"

#include <algorithm>

namespace dtrain::ps {

ServerList::ServerList(std::vector<uint32_t> members)
    : members_(std::move(members)),
      numbers_(*std::max_element(members_.begin(), members_.end()) + 1, uint32_t{none}) {
    for (uint32_t s = 0; s < size(); ++s) numbers_[members_[s]] = s;
}

ServerList servers_of(const cluster::Session &session) {
    const auto &members = session.members();
    const auto workers = members.begin() + session.workers();
    const bool all = session.servers() == 0 &&
                     std::none_of(members.begin(), workers, [](const auto &m) { return m.serves; });
    std::vector<uint32_t> serving;
    for (uint32_t m = session.workers(); m < members.size(); m++) serving.push_back(m);
    for (uint32_t m = 0; m < session.workers(); m++)
        if (all || members[m].serves) serving.push_back(m);
    return ServerList(std::move(serving));
}

} // namespace dtrain::ps
