// How a communicator runs calls: in shared memory or by messages, by which plan, with which limits.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/call/prepared.h"
#include "collectives/communicator/call_order.h"
#include "collectives/communicator/limits.h"
#include "collectives/communicator/plan_cache.h"
#include "collectives/communicator/shared_memory.h"

#include <memory>
#include <optional>

namespace dtrain::collectives {

// Guarded by the order of calls. Whatever changes it is done by all ranks at the same point in that
// order.
class Ways {
  public:
    using Turn = CallOrder::Turn;

    // Both must outlive it.
    Ways(const Membership &ranks, const SharedMemory &memory) : ranks_(ranks), memory_(memory) {}

    // Programs repeat the same call, so its checks and its way are kept until the next different
    // call.
    Status prepare(const Turn &, const Call &call, Prepared &p) const {
        return p.is_valid && call == p.call ? Status{DTRAIN_OK} : prepare_anew(call, p);
    }
    Prepared &last(const Turn &) { return last_; } // where prepare() keeps the last call
    // The call's spec, with pieces of the size that messages have.
    CollectiveSpec spec_of(const Prepared &prepared) const {
        CollectiveSpec spec = prepared.spec;
        spec.chunk_bytes = limits_.chunk_bytes;
        return spec;
    }
    // `wanted`: as for PlanCache::get().
    Status find_plan(const Turn &, const CollectiveSpec &spec, bool ragged,
                     std::optional<Algorithm> wanted, std::shared_ptr<const engine::Plan> &out) {
        return plans_.get(spec, ragged, wanted, out);
    }

    const Limits &limits() const { return limits_; }
    void set_limits(const Turn &turn, const Limits &limits) {
        limits_ = limits;
        forget(turn);
    }
    void set_choice(const Turn &, const NetworkModel &model, std::optional<Algorithm> forced) {
        plans_.set_choice(model, forced);
    }
    void forget(const Turn &) { last_.is_valid = false; } // the way of the last call

  private:
    Status prepare_anew(const Call &call, Prepared &p) const;

    const Membership &ranks_;
    const SharedMemory &memory_;
    Limits limits_;
    PlanCache plans_;
    Prepared last_;
};

} // namespace dtrain::collectives
