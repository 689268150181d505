// The conformance suite over verbs, the libfabric transport's provider "verbs;ofi_rxm".
// SPDX-License-Identifier: Apache-2.0
#include "transport/conformance.h"
#include "transport/loaded.h"
#include "transport/ofi.h"

int main() {
    using namespace dtrain::test;
    subject.plugin = load("ofi");
    if (!subject.plugin) return 1;
    subject.options["ofi.provider"] = "verbs;ofi_rxm";
    subject.left_out = ofi_left_out;
    // They fork when the parent has opened a device; tests/rdma/lost_peer does without.
    for (const char *name :
         {"processes_exchange_all_sizes", "a_killed_idle_peer_is_reported",
          "a_killed_peer_fails_what_is_under_way_to_it",
          "a_peer_killed_in_the_middle_of_a_message_fails_its_receive",
          "what_a_dead_peer_sent_before_can_be_received", "survivors_do_not_notice"})
        subject.left_out[name] = "a forked child may not use RDMA devices of its parent";
    return run_conformance();
}
