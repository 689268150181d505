// The all-gather in which workers agree on a change of mode, in virtual time.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain.h"

#include <algorithm>
#include <cstdint>
#include <map>

// One for each change. When a worker dies, some of the others may have the outcome and others not.
class SimGather {
  public:
    struct Said {
        dtrain_status_t status = 0;
        uint64_t clock = 0;
    };
    void say(uint32_t worker, Said said) { said_[worker] = said; }
    bool complete(uint32_t workers) const { return said_.size() == workers; }
    bool all_can() const {
        return std::all_of(said_.begin(), said_.end(),
                           [](const auto &one) { return one.second.status == 0; });
    }
    uint64_t clock() const { // at which they meet
        uint64_t latest = 0;
        for (const auto &[worker, said] : said_) latest = std::max(latest, said.clock);
        return latest;
    }

  private:
    std::map<uint32_t, Said> said_;
};
