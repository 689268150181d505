// Finds environment variables that look like dtrain's but have no effect: most likely misspelled.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace dtrain::cluster {

// One log line for each "DTRAIN_..." variable of an environment (in the form of `environ`) that
// nothing reads, with the nearest name that is read. DTRAIN_TEST_... is reserved for tests,
// DTRAIN_PLUGIN_... for plugins.
std::vector<std::string> stray_variables(const char *const *environment);

} // namespace dtrain::cluster
