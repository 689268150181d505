// The conformance suite over verbs, by the UCX transport.
// SPDX-License-Identifier: Apache-2.0
#include "rdma/no_forks.h"
#include "transport/ucx.h"

int main() {
    using namespace dtrain::test;
    subject.copies_messages = false;
    subject.library_memory = 80 << 20; // 8192 announced messages in the 8 KiB that each came in
    return run_over_ucx("rc,ud", without_forks());
}
