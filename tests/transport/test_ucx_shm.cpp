// The UCX transport over shared memory.
// SPDX-License-Identifier: Apache-2.0
#include "conformance.h"
#include "ucx.h"

int main() {
    return dtrain::test::run_over_ucx(
        "posix,sysv",
        {{"a_peer_killed_in_the_middle_of_a_message_fails_its_receive",
          "who is killed while it writes to UCX's queue of a peer stops that queue"}});
}
