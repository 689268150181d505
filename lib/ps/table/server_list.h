// The members of a job that serve tables, in the order of their server numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace dtrain::cluster {
class Session;
}

namespace dtrain::ps {

class ServerList {
  public:
    static constexpr uint32_t none = UINT32_MAX;

    explicit ServerList(std::vector<uint32_t> members); // at least one
    uint32_t size() const { return uint32_t(members_.size()); }
    uint32_t member(uint32_t server) const { return members_[server]; }
    uint32_t number(uint32_t member) const { // none: the member is not a server
        return member < numbers_.size() ? numbers_[member] : none;
    }

  private:
    std::vector<uint32_t> members_, numbers_; // by server; by member
};

// The dedicated servers, then the workers with the option ps.serve; all workers if there would be
// no server otherwise. All members of a job compute the same list.
ServerList servers_of(const cluster::Session &session);

} // namespace dtrain::ps
