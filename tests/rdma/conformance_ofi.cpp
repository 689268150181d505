// The conformance suite over verbs, the libfabric transport's provider "verbs;ofi_rxm".
// SPDX-License-Identifier: Apache-2.0
#include "rdma/no_forks.h"
#include "transport/ofi.h"

int main() {
    using namespace dtrain::test;
    return run_over_ofi("verbs;ofi_rxm", without_forks());
}
