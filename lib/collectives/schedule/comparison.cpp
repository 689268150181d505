// Writes the steps in which ranks compare their results.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/comparison.h"

#include "collectives/call/extents.h"
#include "engine/tag.h"

#include <numeric>
#include <utility>

namespace dtrain::collectives {

using engine::Space;
using engine::Step;
using engine::StepKind;

namespace {

constexpr uint64_t hash_bytes = 8;

class Tail {
  public:
    explicit Tail(engine::Schedule &schedule) : schedule_(schedule) {}

    // Returns the step's index.
    uint32_t add(Step step, std::initializer_list<uint32_t> deps) {
        step.first_dep = uint32_t(schedule_.deps.size());
        step.deps_count = uint32_t(deps.size());
        schedule_.deps.insert(schedule_.deps.end(), deps);
        schedule_.steps.push_back(step);
        return uint32_t(schedule_.steps.size()) - 1;
    }
    // After all steps so far.
    uint32_t add_last(Step step) {
        step.first_dep = uint32_t(schedule_.deps.size());
        step.deps_count = uint32_t(schedule_.steps.size());
        schedule_.deps.resize(schedule_.deps.size() + step.deps_count);
        std::iota(schedule_.deps.end() - step.deps_count, schedule_.deps.end(), 0);
        schedule_.steps.push_back(step);
        return uint32_t(schedule_.steps.size()) - 1;
    }
    uint32_t message(StepKind kind, int32_t peer, engine::Place place,
                     std::initializer_list<uint32_t> deps) {
        Step step;
        step.kind = kind;
        step.peer = peer;
        (kind == StepKind::send ? step.src : step.dst) = place;
        step.bytes = hash_bytes;
        step.message = engine::comparing_message;
        return add(step, deps);
    }

  private:
    engine::Schedule &schedule_;
};

} // namespace

bool can_compare(const CollectiveSpec &spec) {
    const bool same = spec.kind == Kind::allreduce || spec.kind == Kind::broadcast ||
                      (spec.kind == Kind::allgather && spec.displs.empty());
    return same && spec.size > 1 && output_bytes(spec) > 0;
}

std::shared_ptr<const engine::Plan> with_comparison(const CollectiveSpec &spec,
                                                    const engine::Plan &plan) {
    engine::Schedule schedule = plan.schedule;
    const engine::Place own = {Space::scratch, schedule.scratch_bytes};
    const engine::Place first = {Space::scratch, own.offset + hash_bytes};
    const engine::Place second = {Space::scratch, first.offset + hash_bytes};
    schedule.scratch_bytes += 3 * hash_bytes;
    const int32_t before = (spec.rank + spec.size - 1) % spec.size;
    const int32_t after = (spec.rank + 1) % spec.size;
    Tail tail(schedule);
    Step hash;
    hash.kind = StepKind::hash;
    hash.src = {Space::output, 0};
    hash.dst = own;
    hash.bytes = output_bytes(spec);
    const uint32_t hashed = tail.add_last(hash);
    tail.message(StepKind::send, before, own, {hashed});
    const uint32_t from_before = tail.message(StepKind::recv, before, first, {});
    Step compare;
    compare.kind = StepKind::compare;
    compare.peer = before;
    compare.src = own;
    compare.dst = first;
    compare.bytes = hash_bytes;
    if (spec.size == 2) {
        tail.add(compare, {hashed, from_before});
    } else {
        tail.message(StepKind::send, after, own, {hashed});
        const uint32_t from_after = tail.message(StepKind::recv, after, second, {});
        compare.bytes = 2 * hash_bytes;
        tail.add(compare, {hashed, from_before, from_after});
    }
    return engine::Plan::make(std::move(schedule), plan.algorithm);
}

} // namespace dtrain::collectives
