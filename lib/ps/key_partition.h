// Which server holds the row of a key.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/hash.h"

#include <cstdint>

namespace dtrain::ps {

// Equal shares of a hash of the keys: none of the hashes by which rows are found within a server,
// or each server would use a part of its index only.
class KeyPartition {
  public:
    // servers > 0; version: grows when a later partition replaces this one.
    explicit KeyPartition(uint32_t servers, uint32_t version = 0)
        : servers_(servers), version_(version) {}

    uint32_t server_of(uint64_t key) const { // Lemire: Fast random integer generation, 2019
        return uint32_t((unsigned __int128)(mix(~key)) * servers_ >> 64);
    }
    uint32_t servers() const { return servers_; }
    uint32_t version() const { return version_; }

  private:
    uint32_t servers_, version_;
};

} // namespace dtrain::ps
