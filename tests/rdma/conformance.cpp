// The conformance suite over verbs, the libfabric transport's provider "verbs;ofi_rxm".
// SPDX-License-Identifier: Apache-2.0
#include "transport/ofi.h"

int main() {
    // tests/rdma/lost_peer does without forks.
    constexpr char forks[] = "a forked child may not use RDMA devices of its parent";
    return dtrain::test::run_over_ofi(
        "verbs;ofi_rxm", {{"processes_exchange_all_sizes", forks},
                          {"a_killed_idle_peer_is_reported", forks},
                          {"a_killed_peer_fails_what_is_under_way_to_it", forks},
                          {"a_peer_killed_in_the_middle_of_a_message_fails_its_receive", forks},
                          {"what_a_dead_peer_sent_before_can_be_received", forks},
                          {"survivors_do_not_notice", forks}});
}
