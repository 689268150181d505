// Specs and schedules of all ranks of one collective, for the tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/algorithms/build.h"
#include "engine/schedule.h"

#include <cstdint>
#include <vector>

struct EveryRank {
    std::vector<dtrain::collectives::CollectiveSpec> specs;
    std::vector<dtrain::engine::Schedule> schedules;

    // Copies `call` for each of its ranks.
    explicit EveryRank(const dtrain::collectives::CollectiveSpec &call)
        : specs(size_t(call.size), call), schedules(size_t(call.size)) {
        for (int32_t rank = 0; rank < call.size; rank++) specs[size_t(rank)].rank = rank;
    }

    dtrain::Status build(dtrain::collectives::Algorithm algorithm) {
        for (size_t rank = 0; rank < specs.size(); rank++) {
            auto status = dtrain::collectives::build(specs[rank], algorithm, schedules[rank]);
            if (status < 0) return status;
        }
        return DTRAIN_OK;
    }
};
