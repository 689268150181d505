// Which members of a job serve tables, in the order of their numbers.
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
    uint32_t number(uint32_t member) const { // none: it is no server
        return member < numbers_.size() ? numbers_[member] : none;
    }

  private:
    std::vector<uint32_t> members_, numbers_; // by server; by member
};

// The dedicated servers, then the workers that said that they serve (option ps.serve), or all of
// them if there would be none. All members of a job make the same list.
ServerList servers_of(const cluster::Session &session);

} // namespace dtrain::ps
