// A transport behind a verifier, as a plugin.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "conformance.h"
#include "lib/transport/verifier.h"

#include <cstring>

namespace dtrain::test {

inline const dtrain_tp_plugin_t *behind; // the transport's own
inline dtrain_tp_ops_t verified_ops;

inline dtrain_status_t open_verified(const dtrain_tp_host_t *host, const char *name,
                                     dtrain_tp_dev_t **dev_p) {
    dtrain_tp_ops_t ops = {};
    std::memcpy(&ops, behind->ops, sizeof ops);
    if (dtrain_status_t s = ops.open(host, name, dev_p); s != DTRAIN_OK) return s;
    const dtrain_status_t s = transport::verify_messages(ops, *dev_p);
    verified_ops = ops; // the same for every device
    verified_ops.open = open_verified;
    return s;
}

inline const dtrain_tp_plugin_t *verified(const dtrain_tp_plugin_t &plugin) {
    static const dtrain_tp_plugin_t out = {sizeof out, DTRAIN_TP_ABI, plugin.name, plugin.version,
                                           &verified_ops};
    behind = &plugin;
    dtrain_tp_dev_t *dev = nullptr;
    FakeHost host;
    char names[1024];
    if (plugin.ops->list(host.table(), names, sizeof names) != DTRAIN_OK) return nullptr;
    names[strcspn(names, ",")] = '\0';
    if (open_verified(host.table(), names, &dev) != DTRAIN_OK) return nullptr;
    verified_ops.close(dev);
    return &out;
}

} // namespace dtrain::test
