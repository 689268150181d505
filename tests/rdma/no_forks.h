// What the conformance suite cannot do over RDMA devices; tests/rdma/lost_peer does without forks.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>

namespace dtrain::test {

inline std::map<std::string, const char *> without_forks() {
    static constexpr char why[] = "a forked child may not use RDMA devices of its parent";
    return {{"processes_exchange_all_sizes", why},
            {"a_killed_idle_peer_is_reported", why},
            {"a_killed_peer_fails_what_is_under_way_to_it", why},
            {"a_peer_killed_in_the_middle_of_a_message_fails_its_receive", why},
            {"what_a_dead_peer_sent_before_can_be_received", why},
            {"survivors_do_not_notice", why}};
}

} // namespace dtrain::test
