// UCX made quiet, and configured. Its settings are process-wide where they are about logging.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"
#include "ucx/networks.h"

#include <memory>
#include <ucp/api/ucp.h>

namespace dtrain::ucx {

struct ReleaseConfig {
    void operator()(ucp_config_t *config) const { ucp_config_release(config); }
};
using Config = std::unique_ptr<ucp_config_t, ReleaseConfig>;

// Keeps UCX from printing to standard output, and at all but before it aborts. Once per process.
void quieten();

// UCX has a thread of its own, which a fork loses: a child can use it only if its parent did not at
// that time. enter() says whether; leave() follows each enter() that returned true.
bool enter();
void leave();

struct Settings {
    Config config;
    Networks networks;
    bool chosen = false; // they are, by the user
};

// The environment's settings (UCX_*), over them the options ucx.tls and ucx.devices, over them what
// this transport relies on. On failure with the text of it.
dtrain_status_t configure(const tp::Host &host, Settings &settings);

} // namespace dtrain::ucx
