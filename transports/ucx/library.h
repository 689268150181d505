// Configures UCX, and keeps it from printing. Its logging settings are process-wide.
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

// Keeps UCX from printing to standard output, and from printing at all except before it aborts.
// Once per process.
void quieten();

// UCX has a thread, which is lost in a fork: a child can use UCX only if its parent did not use it
// at that time. enter() returns whether it can; each enter() that returned true needs a leave().
bool enter();
void leave();

struct Settings {
    Config config;
    Networks networks;
    bool chosen = false; // the user has chosen the networks
};

// Reads the environment's settings (UCX_*); the options ucx.tls and ucx.devices override them, and
// the settings that this transport relies on override those. On failure the error text is set.
dtrain_status_t configure(const tp::Host &host, Settings &settings);

} // namespace dtrain::ucx
