// What the core offers to transport plugins: the dtrain_tp_host_t that open() gets.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"
#include "dtrain_transport.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::transport {

// One per context. Outlives every device that was opened with it; options, log and clock outlive
// it, and options do not change meanwhile. All services are thread-safe.
class Host {
  public:
    using Copy = Status (*)(void *dst, const void *src, size_t len);

    // secret: key of sign(), empty when the job has none. copy: for memory that may be a device's;
    // NULL: host memory only.
    Host(const Options &options, Log &log, Clock &clock, std::vector<uint8_t> secret = {},
         Copy copy = nullptr);
    ~Host(); // wipes the secret
    Host(const Host &) = delete;
    Host &operator=(const Host &) = delete;

    const dtrain_tp_host_t *table() const { return &table_; }
    // What plugins read as "local.address". Under the lock of the devices.
    void set_local_address(std::string address) { local_address_ = std::move(address); }

  private:
    friend struct Services;
    const Options &options_;
    Log &log_;
    Clock &clock_;
    std::vector<uint8_t> secret_;
    Copy copy_;
    std::string local_address_;
    dtrain_tp_host_t table_;
};

} // namespace dtrain::transport
