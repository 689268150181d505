// The example plugin, which is made as one from outside of the tree would be.
// SPDX-License-Identifier: Apache-2.0
#include "conformance.h"
#include "loaded.h"

int main() {
    using namespace dtrain::test;
    subject.plugin = load("queue");
    if (!subject.plugin) return 1;
    subject.processes = false;
    subject.authenticates = false;
    return run_conformance();
}
