// Transports that are not built in: taken from their files, as a program would.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "transport/plugin.h"

namespace dtrain::test {

inline const dtrain_tp_plugin_t *load(const char *name) {
    const dtrain_tp_plugin_t *plugin = nullptr;
    if (transport::find_plugin(name, PLUGIN_FOLDER, plugin) != DTRAIN_OK)
        print_error("%s\n", error_text());
    return plugin;
}

} // namespace dtrain::test
