// The conformance suite: what every transport has to do, whatever it is made of. A test program
// names its transport in `subject` and calls run_conformance().
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rig.h"

#include <span>

namespace dtrain::test {

// Runs all cases but those left out, and those of the transport's own; returns the number of
// failures. DTRAIN_TEST_PROTECTION=integrity or encrypted: all connections are protected.
int run_conformance(std::span<const CMUnitTest> own = {});

} // namespace dtrain::test
