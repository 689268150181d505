// Values on their way from an accelerator to the memory that an answer is sent from.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::ps {

class Delivery {
  public:
    enum class State : uint8_t { coming, there, failed };

    Delivery() = default;
    virtual ~Delivery() = default;
    Delivery(const Delivery &) = delete;
    Delivery &operator=(const Delivery &) = delete;
    // Needs the agent's lock; never waits. To be called again while they are coming.
    virtual State look() = 0;
};

} // namespace dtrain::ps
