// The shared-memory transport behind a verifier does all that a transport has to.
// SPDX-License-Identifier: Apache-2.0
#include "verified.h"

extern "C" const dtrain_tp_plugin_t dtrain_tp_plugin_shm;

int main() {
    using namespace dtrain::test;
    subject.plugin = verified(dtrain_tp_plugin_shm);
    return subject.plugin == nullptr ? 1 : run_conformance();
}
