// Computes the successors of each step.
// SPDX-License-Identifier: Apache-2.0
#include "engine/plan.h"

namespace dtrain::engine {

std::shared_ptr<const Plan> Plan::make(Schedule &&schedule, const char *algorithm) {
    auto plan = std::make_shared<Plan>();
    plan->algorithm = algorithm;
    plan->schedule = std::move(schedule);
    const Schedule &s = plan->schedule;
    plan->first_successor.assign(s.steps.size() + 1, 0);
    for (const Step &step : s.steps)
        for (uint32_t d = 0; d < step.deps_count; d++)
            plan->first_successor[s.deps[step.first_dep + d] + 1]++;
    for (size_t i = 0; i < s.steps.size(); i++)
        plan->first_successor[i + 1] += plan->first_successor[i];
    plan->successors.resize(s.deps.size());
    std::vector<uint32_t> at(plan->first_successor.begin(), plan->first_successor.end() - 1);
    for (uint32_t i = 0; i < s.steps.size(); i++)
        for (uint32_t d = 0; d < s.steps[i].deps_count; d++)
            plan->successors[at[s.deps[s.steps[i].first_dep + d]]++] = i;
    return plan;
}

} // namespace dtrain::engine
