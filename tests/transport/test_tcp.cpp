// The TCP transport.
// SPDX-License-Identifier: Apache-2.0
#include "conformance.h"
#include "tcp_strangers.h"

extern "C" const dtrain_tp_plugin_t dtrain_tp_plugin_tcp;

int main() {
    using namespace dtrain::test;
    subject.plugin = &dtrain_tp_plugin_tcp;
    return run_conformance(stranger_cases);
}
