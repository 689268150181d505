// The services of the core for plugins of accelerators.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/log.h"
#include "base/options.h"
#include "base/status.h"
#include "dtrain_device.h"

namespace dtrain::accel {

// Outlives all that was opened with it; options and log outlive the host. Thread-safe.
class Host {
  public:
    Host(const Options &options, Log &log);
    Host(const Host &) = delete;
    Host &operator=(const Host &) = delete;
    const dtrain_dv_host_t *table() const { return &table_; }

  private:
    friend struct Services;
    const Options &options_;
    Log &log_;
    dtrain_dv_host_t table_;
};

} // namespace dtrain::accel
