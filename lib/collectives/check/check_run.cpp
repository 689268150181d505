// Part of the checker: runs all ranks on symbols in a random order of events.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/check/check_parts.h"

#include <algorithm>

namespace dtrain::collectives {

using engine::Step;
using engine::StepKind;

namespace {

class Run {
  public:
    Run(std::span<const CollectiveSpec> specs, const Linked &linked, uint64_t seed, bool rendezvous)
        : linked_(linked), element_(specs[0].element_bytes), rendezvous_(rendezvous), random_(seed),
          missing_(linked.size()), begun_(linked.size()), payload_(rendezvous ? 0 : linked.size()) {
        for (const CollectiveSpec &spec : specs)
            memories_.emplace_back(spec, linked.schedules[size_t(spec.rank)].scratch_bytes);
    }

    Status run() {
        for (uint32_t id = 0; id < linked_.size(); id++) {
            missing_[id] = linked_.step(id).deps_count;
            if (missing_[id] == 0) ready_.push_back(id);
        }
        while (!ready_.empty()) {
            random_ = mix(random_);
            std::swap(ready_[random_ % ready_.size()], ready_.back());
            uint32_t id = ready_.back();
            ready_.pop_back();
            if (Status s = begin(id); s < 0) return s;
        }
        if (ended_ == linked_.size()) return DTRAIN_OK;
        auto stuck = std::find(begun_.begin(), begun_.end(), true);
        return fail(DTRAIN_ERR_INVALID, "deadlock: %u steps never end; %s waits for its peer",
                    linked_.size() - ended_,
                    describe(linked_, uint32_t(stuck - begun_.begin())).c_str());
    }

    const SymbolMemory &memory(int32_t rank) const { return memories_[size_t(rank)]; }

  private:
    Symbol *at(uint32_t id, engine::Place place) {
        return memories_[size_t(linked_.owner[id])].at(place);
    }

    Status begin(uint32_t id) {
        const Step &step = linked_.step(id);
        uint32_t peer = linked_.match[id];
        if (step.kind != StepKind::send && !receives(step.kind)) return finish_local(id);
        if (step.kind == StepKind::send && !rendezvous_) {
            Symbol *src = at(id, step.src);
            payload_[id].assign(src, src + step.bytes / element_);
            end(id);
        }
        begun_[id] = step.kind != StepKind::send || rendezvous_;
        bool arrived =
            step.kind == StepKind::send || rendezvous_ ? begun_[peer] : !payload_[peer].empty();
        if (!arrived) return DTRAIN_OK;
        return step.kind == StepKind::send ? deliver(id, peer) : deliver(peer, id);
    }

    Status deliver(uint32_t send, uint32_t recv) {
        const Step &from = linked_.step(send), &to = linked_.step(recv);
        const Symbol *data = rendezvous_ ? at(send, from.src) : payload_[send].data();
        Symbol *dst = at(recv, to.dst);
        const Symbol *own = to.kind == StepKind::recv_reduce ? at(recv, to.src) : nullptr;
        for (uint64_t i = 0; i < to.bytes / element_; i++) {
            if (!data[i].defined() || (own && !own[i].defined()))
                return fail(DTRAIN_ERR_INVALID, "%s: reads memory that was never written",
                            describe(linked_, data[i].defined() ? recv : send).c_str());
            dst[i] = own ? combined(own[i], data[i]) : data[i];
        }
        begun_[send] = begun_[recv] = false;
        if (rendezvous_) end(send);
        end(recv);
        return DTRAIN_OK;
    }

    Status finish_local(uint32_t id) {
        const Step &step = linked_.step(id);
        if (step.kind == StepKind::weigh) return weigh(id);
        Symbol *dst = at(id, step.dst);
        const Symbol *src = reads_src(step.kind) ? at(id, step.src) : dst;
        for (uint64_t i = 0; i < step.bytes / element_; i++) {
            if (!src[i].defined() || (reads_dst(step.kind) && !dst[i].defined()))
                return fail(DTRAIN_ERR_INVALID, "%s: reads memory that was never written",
                            describe(linked_, id).c_str());
            if (step.kind == StepKind::copy) dst[i] = src[i];
            if (step.kind == StepKind::reduce) dst[i] = combined(dst[i], src[i]);
            if (step.kind == StepKind::scale) dst[i] = averaged(dst[i]);
        }
        end(id);
        return DTRAIN_OK;
    }

    Status weigh(uint32_t id) {
        const Step &step = linked_.step(id);
        const auto &terms = linked_.schedules[size_t(linked_.owner[id])].terms;
        for (uint64_t i = 0; i < step.bytes / element_; i++) {
            Symbol sum;
            for (uint32_t t = step.first_term; t < step.first_term + step.terms_count; t++) {
                const Symbol &part = at(id, terms[t].src)[i];
                if (!part.defined())
                    return fail(DTRAIN_ERR_INVALID, "%s: reads memory that was never written",
                                describe(linked_, id).c_str());
                sum = weighed(sum, part, terms[t].weight);
            }
            at(id, step.dst)[i] = sum;
        }
        end(id);
        return DTRAIN_OK;
    }

    void end(uint32_t id) {
        ended_++;
        for (uint32_t dependent : linked_.waiting_for(id))
            if (--missing_[dependent] == 0) ready_.push_back(dependent);
    }

    const Linked &linked_;
    const uint64_t element_;
    const bool rendezvous_;
    uint64_t random_;
    std::vector<SymbolMemory> memories_;
    std::vector<uint32_t> missing_, ready_;
    std::vector<bool> begun_;                  // steps that have begun and wait for their peers
    std::vector<std::vector<Symbol>> payload_; // eager sends: data in transit, by send
    uint32_t ended_ = 0;
};

} // namespace

Status check_run(std::span<const CollectiveSpec> specs, const Linked &linked, uint64_t seed,
                 bool rendezvous) {
    Run run(specs, linked, seed, rendezvous);
    if (Status s = run.run(); s < 0) return s;
    Expectation expectation(specs);
    for (int32_t rank = 0; rank < int32_t(specs.size()); rank++)
        if (Status s = expectation.compare(rank, run.memory(rank)); s < 0) return s;
    return DTRAIN_OK;
}

} // namespace dtrain::collectives
