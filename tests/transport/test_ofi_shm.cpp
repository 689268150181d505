// The libfabric transport over provider "shm".
// SPDX-License-Identifier: Apache-2.0
#include "conformance.h"
#include "loaded.h"
#include "ofi.h"

int main() {
    using namespace dtrain::test;
    subject.plugin = load("ofi");
    if (!subject.plugin) return 1;
    subject.options["ofi.provider"] = "shm";
    subject.left_out = ofi_left_out;
    for (const char *name :
         {"connecting_to_a_closed_device_fails", "a_small_message_passes_a_large_one_that_waits",
          "a_small_message_passes_a_full_window", "a_receiver_may_go_once_it_has_everything",
          "closing_in_the_middle_of_everything_does_no_harm"})
        subject.left_out[name] = "libfabric's shm touches the memory of a device of the same "
                                 "process that has closed";
    subject.left_out["a_peer_killed_in_the_middle_of_a_message_fails_its_receive"] =
        "libfabric's shm may wait for ever for a lock that a dead process held";
    return run_conformance();
}
