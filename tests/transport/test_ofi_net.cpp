// The libfabric transport over provider "net", or the one that DTRAIN_TEST_PROVIDER names.
// SPDX-License-Identifier: Apache-2.0
#include "conformance.h"
#include "loaded.h"
#include "ofi.h"

int main() {
    using namespace dtrain::test;
    subject.plugin = load("ofi");
    if (!subject.plugin) return 1;
    const char *provider = getenv("DTRAIN_TEST_PROVIDER");
    subject.options["ofi.provider"] = provider ? provider : "net";
    subject.left_out = ofi_left_out;
    return run_conformance();
}
