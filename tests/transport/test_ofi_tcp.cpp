// The libfabric transport over provider "tcp;ofi_rxm".
// SPDX-License-Identifier: Apache-2.0
#include "conformance.h"
#include "loaded.h"
#include "ofi.h"

int main() {
    using namespace dtrain::test;
    subject.plugin = load("ofi");
    if (!subject.plugin) return 1;
    subject.options["ofi.provider"] = "tcp;ofi_rxm";
    subject.left_out = ofi_left_out;
    return run_conformance();
}
