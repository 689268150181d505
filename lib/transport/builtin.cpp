// The table of transports that are linked into the library: the only place in it that names any.
// SPDX-License-Identifier: Apache-2.0
#include "transport/plugin.h"

extern "C" const dtrain_tp_plugin_t dtrain_tp_plugin_shm, dtrain_tp_plugin_tcp;

namespace dtrain::transport {

std::span<const dtrain_tp_plugin_t *const> builtin_plugins() {
    static constexpr const dtrain_tp_plugin_t *table[] = {
        &dtrain_tp_plugin_shm,
        &dtrain_tp_plugin_tcp,
    };
    return table;
}

} // namespace dtrain::transport
