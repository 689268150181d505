// The services of the core for plugins of accelerators.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/log.h"
#include "base/options.h"
#include "base/status.h"
#include "dtrain_device.h"

#include <mutex>

namespace dtrain::accel {

// Outlives all that was opened with it; options and log are used until leave(). Thread-safe.
class Host {
  public:
    Host(const Options &options, Log &log);
    Host(const Host &) = delete;
    Host &operator=(const Host &) = delete;
    const dtrain_dv_host_t *table() const { return &table_; }
    // Before the end of options and log: what is closed later has no options, and logs nothing.
    void leave();

  private:
    friend struct Services;
    std::mutex mutex_; // of the next two
    const Options *options_;
    Log *log_;
    dtrain_dv_host_t table_;
};

} // namespace dtrain::accel
