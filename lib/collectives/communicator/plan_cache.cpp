// Looks up plans, and builds missing ones.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/plan_cache.h"

#include "collectives/cost/choose.h"

#include <algorithm>

namespace dtrain::collectives {
namespace {

// Compares two specs. Within one communicator rank and size are always equal.
bool same(const CollectiveSpec &a, const CollectiveSpec &b) {
    return a.kind == b.kind && a.root == b.root && a.element_bytes == b.element_bytes &&
           a.count == b.count && a.average == b.average && a.adasum == b.adasum &&
           a.in_place == b.in_place && a.chunk_bytes == b.chunk_bytes;
}

} // namespace

Status PlanCache::make(const CollectiveSpec &spec, std::optional<Algorithm> wanted,
                       std::shared_ptr<const engine::Plan> &out) const {
    Algorithm algorithm = Algorithm::direct;
    std::optional<Algorithm> forced = wanted;
    if (spec.kind == Kind::allreduce && forced_) forced = forced_;
    if (Status s = choose(spec, model_, forced, algorithm); s != DTRAIN_OK) return s;
    engine::Schedule schedule;
    CollectiveSpec one = spec;
    one.chunk_bytes = piece_bytes(spec, algorithm, model_);
    if (Status s = build(one, algorithm, schedule); s != DTRAIN_OK) return s;
    out = engine::Plan::make(std::move(schedule), algorithm_name(algorithm));
    return DTRAIN_OK;
}

Status PlanCache::get(const CollectiveSpec &spec, bool ragged, std::optional<Algorithm> wanted,
                      std::shared_ptr<const engine::Plan> &out) {
    if (ragged) return make(spec, wanted, out);
    calls_++;
    for (Entry &entry : entries_)
        if (same(entry.spec, spec) && entry.wanted == wanted) {
            entry.used = calls_;
            out = entry.plan;
            return DTRAIN_OK;
        }
    if (Status s = make(spec, wanted, out); s != DTRAIN_OK) return s;
    if (entries_.size() == most)
        entries_.erase(
            std::min_element(entries_.begin(), entries_.end(),
                             [](const Entry &a, const Entry &b) { return a.used < b.used; }));
    entries_.push_back({spec, wanted, out, calls_});
    return DTRAIN_OK;
}

} // namespace dtrain::collectives
