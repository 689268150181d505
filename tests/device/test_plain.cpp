// The example plugin, which is made as one from outside of the tree would be.
// SPDX-License-Identifier: Apache-2.0
#include "conformance.h"

int main() {
    using namespace dtrain::test;
    subject.plugin = load(PLUGIN_FOLDER "/libdtrain_device_plain.so");
    return subject.plugin == nullptr ? 1 : run_conformance();
}
