// Environment variables that look like ours and mean nothing: most likely misspelled.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace dtrain::cluster {

// A line for the log about each "DTRAIN_..." of an environment (as `environ`) that nobody reads,
// with the nearest name that somebody does. DTRAIN_TEST_... belongs to tests, DTRAIN_PLUGIN_... to
// plugins.
std::vector<std::string> stray_variables(const char *const *environment);

} // namespace dtrain::cluster
