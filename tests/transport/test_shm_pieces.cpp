// The shared-memory transport where the kernel copies nothing from process to process, and the ring
// is written past the caches.
// SPDX-License-Identifier: Apache-2.0
#include "conformance.h"

extern "C" const dtrain_tp_plugin_t dtrain_tp_plugin_shm;

int main() {
    using namespace dtrain::test;
    subject.plugin = &dtrain_tp_plugin_shm;
    subject.options["shm.copy"] = "ring";
    subject.options["shm.distance"] = "far";
    return run_conformance();
}
