// Part of the checker: proves that one message at a time per rank suffices.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/check/check_parts.h"

#include <vector>

namespace dtrain::collectives {

using engine::StepKind;

namespace {

// Treats a send and its receive as one node, because they end together: both wait for what either
// waits for.
class Rendezvous {
  public:
    explicit Rendezvous(const Linked &linked)
        : linked_(linked), missing_(linked.size()), after_(linked.size(), none) {
        for (uint32_t id = 0; id < linked.size(); id++)
            missing_[node(id)] += linked.step(id).deps_count;
        put_in_order([](StepKind kind) { return kind == StepKind::send; });
        put_in_order(receives);
    }

    bool all_end() {
        std::vector<uint32_t> ready;
        uint32_t ended = 0, nodes = 0;
        for (uint32_t id = 0; id < linked_.size(); id++) {
            if (node(id) != id) continue;
            nodes++;
            if (missing_[id] == 0) ready.push_back(id);
        }
        auto arrive = [&](uint32_t id) {
            if (--missing_[node(id)] == 0) ready.push_back(node(id));
        };
        while (!ready.empty()) {
            uint32_t first = ready.back();
            ready.pop_back();
            ended++;
            for (uint32_t id : {first, linked_.match[first]}) {
                if (id == none) continue;
                for (uint32_t dependent : linked_.waiting_for(id)) arrive(dependent);
                if (after_[id] != none) arrive(after_[id]);
            }
        }
        return ended == nodes;
    }

  private:
    static constexpr uint32_t none = no_step;

    // The node of a message is its receive.
    uint32_t node(uint32_t id) const {
        return linked_.step(id).kind == StepKind::send ? linked_.match[id] : id;
    }
    // Makes each step of this kind wait for the one before it, on each rank.
    void put_in_order(bool (*is_one)(StepKind)) {
        uint32_t before = none;
        for (uint32_t id = 0; id < linked_.size(); id++) {
            if (!is_one(linked_.step(id).kind)) continue;
            if (before != none && linked_.owner[before] == linked_.owner[id]) {
                after_[before] = id;
                missing_[node(id)]++;
            }
            before = id;
        }
    }

    const Linked &linked_;
    std::vector<uint32_t> missing_; // by node
    std::vector<uint32_t> after_;   // by step
};

} // namespace

Status check_order(const Linked &linked) {
    if (Rendezvous(linked).all_end()) return DTRAIN_OK;
    return fail(DTRAIN_ERR_INVALID, "deadlock when each rank sends and receives one message at a "
                                    "time, in the order of its steps");
}

} // namespace dtrain::collectives
