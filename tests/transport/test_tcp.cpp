// The TCP transport.
// SPDX-License-Identifier: Apache-2.0
#include "conformance.h"
#include "tcp_strangers.h"

extern "C" const dtrain_tp_plugin_t dtrain_tp_plugin_tcp;

int main() {
    using namespace dtrain::test;
    subject.plugin = &dtrain_tp_plugin_tcp;
    // They know no secret.
    const bool is_protected = getenv("DTRAIN_TEST_PROTECTION") != nullptr;
    return is_protected ? run_conformance() : run_conformance(stranger_cases);
}
