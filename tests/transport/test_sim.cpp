// The simulated network, in one process.
// SPDX-License-Identifier: Apache-2.0
#include "conformance.h"
#include "loaded.h"

int main() {
    using namespace dtrain::test;
    subject.plugin = load("sim");
    if (!subject.plugin) return 1;
    subject.options = {{"plugin.sim.jitter", "3000"}, {"plugin.sim.bandwidth", "10000000000"}};
    subject.processes = false;
    subject.authenticates = false;
    return run_conformance();
}
