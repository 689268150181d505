// Proves that the schedules of all ranks together do what the collective promises.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/check/check.h"

#include "collectives/check/check_parts.h"

#include <cinttypes>

namespace dtrain::collectives {

using engine::Place;
using engine::Schedule;
using engine::Space;
using engine::Step;

namespace {

// For each step a set of ranks, as bits.
class Knowledge {
  public:
    Knowledge(uint32_t steps, size_t ranks)
        : words_((ranks + 63) / 64), bits_(size_t(steps) * words_) {}
    void add(uint32_t step, int32_t rank) {
        bits_[step * words_ + size_t(rank) / 64] |= uint64_t{1} << rank % 64;
    }
    bool has(uint32_t step, int32_t rank) const {
        return bits_[step * words_ + size_t(rank) / 64] >> rank % 64 & 1;
    }
    void merge(uint32_t from, uint32_t into) {
        for (size_t i = 0; i < words_; i++) bits_[into * words_ + i] |= bits_[from * words_ + i];
    }

  private:
    size_t words_;
    std::vector<uint64_t> bits_;
};

// Orders the dependencies and messages of the whole graph as they may happen. The result is shorter
// than the graph if some steps wait for each other.
std::vector<uint32_t> causal_order(const Linked &linked) {
    std::vector<uint32_t> missing(linked.size()), order;
    for (uint32_t id = 0; id < linked.size(); id++) {
        missing[id] = linked.step(id).deps_count + receives(linked.step(id).kind);
        if (missing[id] == 0) order.push_back(id);
    }
    auto arrive = [&](uint32_t id) {
        if (--missing[id] == 0) order.push_back(id);
    };
    for (size_t i = 0; i < order.size(); i++) {
        uint32_t id = order[i];
        for (uint32_t dependent : linked.waiting_for(id)) arrive(dependent);
        if (linked.step(id).kind == engine::StepKind::send) arrive(linked.match[id]);
    }
    return order;
}

} // namespace

Status check_bounds(const CollectiveSpec &spec, const Schedule &schedule) {
    SymbolMemory memory(spec, schedule.scratch_bytes);
    auto outside = [&](const Place &place, uint64_t bytes) {
        uint64_t size = memory.size_of(place.space) * spec.element_bytes;
        return place.offset % spec.element_bytes || bytes > size || place.offset > size - bytes;
    };
    // The same place is no overlap.
    auto overlap = [&](const Place &a, const Place &b, uint64_t bytes) {
        uint64_t src = memory.address(a.space, a.offset / spec.element_bytes);
        uint64_t dst = memory.address(b.space, b.offset / spec.element_bytes);
        uint64_t distance = src < dst ? dst - src : src - dst;
        return distance && distance < bytes / spec.element_bytes;
    };
    for (uint32_t i = 0; i < schedule.steps.size(); i++) {
        const Step &step = schedule.steps[i];
        const char *what = nullptr;
        if (step.bytes == 0 || step.bytes % spec.element_bytes) what = "not a number of elements";
        each_read(schedule, step, [&](const Place &src) {
            if (outside(src, step.bytes))
                what = "source out of bounds";
            else if (writes_dst(step.kind) && overlap(src, step.dst, step.bytes))
                what = "source and target overlap";
        });
        if (writes_dst(step.kind) && outside(step.dst, step.bytes)) what = "target out of bounds";
        if (writes_dst(step.kind) && step.dst.space == Space::input) what = "writes the input";
        if (what)
            return fail(DTRAIN_ERR_INVALID, "%s: %s", describe(spec.rank, i, step).c_str(), what);
    }
    return DTRAIN_OK;
}

Status check_barrier(const Linked &linked) {
    auto ranks = int32_t(linked.schedules.size());
    // One set per step, then one per rank.
    Knowledge knowledge(linked.size() + uint32_t(ranks), size_t(ranks));
    for (uint32_t id : causal_order(linked)) {
        knowledge.add(id, linked.owner[id]);
        for (uint32_t dependent : linked.waiting_for(id)) knowledge.merge(id, dependent);
        if (linked.step(id).kind == engine::StepKind::send) knowledge.merge(id, linked.match[id]);
        knowledge.merge(id, linked.size() + uint32_t(linked.owner[id]));
    }
    for (int32_t rank = 0; ranks > 1 && rank < ranks; rank++)
        for (int32_t other = 0; other < ranks; other++)
            if (!knowledge.has(linked.size() + uint32_t(rank), other))
                return fail(DTRAIN_ERR_INVALID, "rank %d can leave before rank %d has arrived",
                            rank, other);
    return DTRAIN_OK;
}

Status check(std::span<const CollectiveSpec> specs, std::span<const Schedule> schedules,
             uint64_t seed) {
    if (specs.empty() || specs.size() != schedules.size())
        return fail(DTRAIN_ERR_INVALID, "there are %zu schedules for %zu ranks", schedules.size(),
                    specs.size());
    for (size_t rank = 0; rank < specs.size(); rank++) {
        if (Status s = validate(specs[rank]); s < 0) return s;
        if (specs[rank].rank != int32_t(rank) || specs[rank].size != int32_t(specs.size()))
            return fail(DTRAIN_ERR_INVALID, "spec %zu belongs to another rank", rank);
    }
    Linked linked;
    if (Status s = link(schedules, linked); s < 0) return s;
    for (size_t rank = 0; rank < specs.size(); rank++) {
        if (Status s = check_bounds(specs[rank], schedules[rank]); s < 0) return s;
        if (Status s = check_races(specs[rank], schedules[rank]); s < 0) return s;
    }
    for (bool rendezvous : {false, true})
        if (Status s = check_run(specs, linked, seed, rendezvous); s < 0)
            return fail_within(s, "%s sends, seed %" PRIu64, rendezvous ? "rendezvous" : "eager",
                               seed);
    if (Status s = check_order(linked); s < 0) return s;
    return specs[0].kind == Kind::barrier ? check_barrier(linked) : DTRAIN_OK;
}

} // namespace dtrain::collectives
