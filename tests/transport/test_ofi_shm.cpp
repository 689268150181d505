// The libfabric transport over provider "shm".
// SPDX-License-Identifier: Apache-2.0
#include "ofi.h"

int main() {
    constexpr char same_process[] =
        "libfabric's shm touches the memory of a device of the same process that has closed";
    return dtrain::test::run_over_ofi(
        "shm", {{"connecting_to_a_closed_device_fails", same_process},
                {"a_small_message_passes_a_large_one_that_waits", same_process},
                {"a_small_message_passes_a_full_window", same_process},
                {"a_receiver_may_go_once_it_has_everything", same_process},
                {"a_message_taken_back_ends_its_receive", same_process},
                {"closing_in_the_middle_of_everything_does_no_harm", same_process},
                {"closing_while_a_peer_sends_does_no_harm", same_process},
                {"a_peer_killed_in_the_middle_of_a_message_fails_its_receive",
                 "libfabric's shm may wait forever for a lock that a dead process held"},
                {"what_a_stopped_peer_holds_comes_back",
                 "libfabric's shm may wait forever for a lock that a stopped process holds"}});
}
