// The conformance suite: what every plugin for an accelerator has to do. A test program names its
// plugin in `subject` and calls run_conformance().
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rig.h"

#include <span>

namespace dtrain::test {

// Loads a plugin from a file; nullptr: the error is printed.
const dtrain_dv_plugin_t *load(const char *path);

// Runs all cases but those left out, and those of the plugin's own; returns the number of failures.
int run_conformance(std::span<const CMUnitTest> own = {});

} // namespace dtrain::test
