// Keeps the times of tried algorithms by shape of call, and decides.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/adapt.h"

#include <algorithm>

namespace dtrain::collectives {
namespace {

// Compares what is equal on all ranks; in_place is not.
bool same_shape(const CollectiveSpec &a, const CollectiveSpec &b) {
    return a.kind == b.kind && a.root == b.root && a.element_bytes == b.element_bytes &&
           a.count == b.count && a.average == b.average;
}

} // namespace

Adaptation::Shape *Adaptation::find(const CollectiveSpec &spec, bool make) {
    for (Shape &shape : shapes_)
        if (same_shape(shape.spec, spec)) return &shape;
    if (!make || shapes_.size() == most_shapes) return nullptr;
    Shape shape = {.spec = spec, .candidates = candidates(spec, model_), .decided = {}};
    auto bad = [&](const Candidate &c) { return c.ns > most_ratio * shape.candidates[0].ns; };
    shape.candidates.erase(std::find_if(shape.candidates.begin(), shape.candidates.end(), bad),
                           shape.candidates.end());
    if (shape.candidates.size() > most_candidates) shape.candidates.resize(most_candidates);
    if (shape.candidates.size() == 1) shape.decided = shape.candidates[0].algorithm;
    return &shapes_.emplace_back(std::move(shape));
}

bool Adaptation::due(const CollectiveSpec &spec) {
    std::lock_guard lock(mutex_);
    Shape *shape = find(spec, true);
    return shape != nullptr && !shape->decided && shape->calls == tries * shape->candidates.size();
}

Adaptation::Times Adaptation::measured(const CollectiveSpec &spec) {
    std::lock_guard lock(mutex_);
    Shape *shape = find(spec, false);
    return shape != nullptr ? shape->fastest : Times{};
}

Algorithm Adaptation::decide(const CollectiveSpec &spec, const Times &agreed) {
    std::lock_guard lock(mutex_);
    Shape *shape = find(spec, false);
    size_t best = 0;
    for (size_t i = 1; i < shape->candidates.size(); i++)
        if (agreed[i] > 0 && (agreed[best] == 0 || agreed[i] < agreed[best])) best = i;
    shape->decided = shape->candidates[best].algorithm;
    return *shape->decided;
}

std::optional<Algorithm> Adaptation::next(const CollectiveSpec &spec, uint64_t sequence) {
    std::lock_guard lock(mutex_);
    Shape *shape = find(spec, true);
    if (shape == nullptr || shape->decided) return shape != nullptr ? shape->decided : std::nullopt;
    size_t candidate = shape->calls++ % shape->candidates.size();
    // The first try of each algorithm is not timed: it also builds the plan, so it is slower.
    if (shape->calls > shape->candidates.size())
        running_.push_back({sequence, size_t(shape - shapes_.data()), candidate});
    return shape->candidates[candidate].algorithm;
}

void Adaptation::ended(uint64_t sequence, int64_t elapsed_ns) {
    std::lock_guard lock(mutex_);
    auto found = std::find_if(running_.begin(), running_.end(),
                              [&](const Try &t) { return t.sequence == sequence; });
    if (found == running_.end()) return;
    double &fastest = shapes_[found->shape].fastest[found->candidate];
    if (fastest == 0 || double(elapsed_ns) < fastest) fastest = double(elapsed_ns);
    *found = running_.back();
    running_.pop_back();
}

} // namespace dtrain::collectives
