// The tampering transport while it does not tamper.
// SPDX-License-Identifier: Apache-2.0
#include "conformance.h"
#include "loaded.h"

int main() {
    using namespace dtrain::test;
    subject.plugin = load("fault");
    subject.plugins = {{"sim", load("sim")}};
    if (!subject.plugin || !subject.plugins["sim"]) return 1;
    subject.processes = false;
    subject.authenticates = false;
    return run_conformance();
}
