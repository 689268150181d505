// The UCX transport over shared memory.
// SPDX-License-Identifier: Apache-2.0
#include "conformance.h"
#include "ucx.h"

// UCX itself leaks a little for every device that it has closed: found by LeakSanitizer, in UCX's
// code.
extern "C" [[gnu::visibility("default")]] const char *__lsan_default_suppressions();
extern "C" [[gnu::visibility("default")]] const char *__lsan_default_suppressions() {
    return "leak:libuct.so";
}

int main() {
    using namespace dtrain::test;
    subject.left_out["a_peer_killed_in_the_middle_of_a_message_fails_its_receive"] =
        "who is killed while it writes to UCX's queue of a peer stops that queue";
    return run_over_ucx("posix,sysv");
}
