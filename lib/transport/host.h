// The services of the core for transport plugins: the dtrain_tp_host_t that open() gets.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"
#include "base/secret.h"
#include "dtrain_basics.h"
#include "dtrain_transport.h"
#include "protection/level.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dtrain::transport {

// A network card, as a plugin reports it in dtrain_tp_card_t.
struct Card {
    std::string transport, name, address, state, why;
    int32_t numa_node = -1;
    uint64_t bandwidth_bps = 0;
    bool chosen = false;
};

// One per context. Outlives every device opened with it. options, log and clock outlive the host,
// and options do not change meanwhile. All services are thread-safe.
class Host {
  public:
    using Copy = Status (*)(void *dst, const void *src, size_t len);

    // secret: key of sign() and of guards, if the job has one. demand: what guards demand; with no
    // secret, nothing. copy: copies memory that may be a device's; NULL: host memory only.
    Host(const Options &options, Log &log, Clock &clock, const Secret &secret = {},
         const protection::Least &demand = {}, Copy copy = nullptr);
    Host(const Host &) = delete;
    Host &operator=(const Host &) = delete;

    const dtrain_tp_host_t *table() const { return &table_; }
    // Sets a value that plugins can read like an option ("local.address"). Under the lock of the
    // devices.
    void set_fact(const std::string &key, std::string value) { facts_[key] = std::move(value); }
    // The cards of this host that transports have reported, in their order.
    const std::vector<Card> &cards() const { return cards_; }

  private:
    friend struct Services;
    const Options &options_;
    Log &log_;
    Clock &clock_;
    const Secret secret_;
    protection::Least demand_;
    Copy copy_;
    std::map<std::string, std::string, std::less<>> facts_;
    std::vector<Card> cards_;
    dtrain_tp_host_t table_;
};

} // namespace dtrain::transport
