// Those who want to know how long a communicator's calls take.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/adapt.h"
#include "collectives/communicator/explain.h"

#include <memory>

namespace dtrain::collectives {

// Set before the first call of the program.
struct CallTimes {
    std::unique_ptr<Explainer> explainer;   // on rank 0, if option explain is set
    std::unique_ptr<Adaptation> adaptation; // on all ranks or none

    bool wanted() const { return explainer != nullptr || adaptation != nullptr; }
    void ended(const engine::Operation &operation, int64_t elapsed_ns) const {
        if (explainer != nullptr) explainer->ended(operation, elapsed_ns);
        if (adaptation != nullptr) adaptation->ended(operation.sequence, elapsed_ns);
    }
};

} // namespace dtrain::collectives
