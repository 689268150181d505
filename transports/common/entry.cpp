// The only exported symbol of a plugin of this tree. PLUGIN is the plugin's table.
// SPDX-License-Identifier: Apache-2.0
#include "dtrain_basics.h"
#include "dtrain_transport.h"

extern "C" const dtrain_tp_plugin_t PLUGIN;

extern "C" const dtrain_tp_plugin_t *dtrain_transport_query(uint32_t) { return &PLUGIN; }
