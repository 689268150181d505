// The methods of several ranks, with their collectives done in memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "compression/method.h"

#include <cstring>
#include <memory>
#include <vector>

class MethodGroup {
  public:
    using Vector = std::vector<float>;
    using Action = dtrain::compression::Action;

    MethodGroup(const dtrain::compression::Params &params, int size) {
        for (int rank = 0; rank < size; rank++)
            methods_.push_back(make_method(params, {.rank = rank, .size = size}));
    }

    // What damages the wire between ranks: called with each gathered or exchanged buffer.
    void (*damage)(void *buffer, uint64_t bytes) = nullptr;

    // One result for each rank; in place on odd ones. The first `corrupt` ends it.
    Action::Kind run(const std::vector<Vector> &inputs, bool average,
                     std::vector<Vector> &results) {
        results = inputs;
        for (size_t r = 0; r < methods_.size(); r++)
            methods_[r]->begin(r % 2 ? results[r].data() : inputs[r].data(), results[r].data(),
                               average);
        for (;;) {
            std::vector<Action> actions;
            for (auto &method : methods_) {
                Action action;
                while (action.kind == Action::Kind::again) action = method->next();
                actions.push_back(action);
            }
            if (actions[0].kind != Action::Kind::call) return actions[0].kind;
            carry_out(actions);
        }
    }

    dtrain::compression::Method &method(size_t rank) { return *methods_[rank]; }

  private:
    void carry_out(const std::vector<Action> &actions) {
        using Kind = dtrain::collectives::Kind;
        const uint64_t n = actions[0].call.count, ranks = actions.size();
        std::vector<std::vector<uint8_t>> sent;
        uint64_t bytes = n;
        if (actions[0].call.kind == Kind::alltoall) bytes = n * ranks;
        if (actions[0].call.kind == Kind::allreduce) bytes = n * sizeof(float);
        for (const Action &action : actions) {
            assert_int_equal(action.kind, Action::Kind::call);
            assert_int_equal(action.call.kind, actions[0].call.kind);
            assert_int_equal(action.call.count, n);
            auto *from = static_cast<const uint8_t *>(action.call.send);
            sent.emplace_back(from, from + bytes);
        }
        for (size_t to = 0; to < ranks; to++) {
            auto *recv = static_cast<uint8_t *>(actions[to].call.recv);
            if (actions[to].call.kind == Kind::allreduce) {
                add(sent, reinterpret_cast<float *>(recv), n, actions[to].call.op);
                continue;
            }
            bool all_to_all = actions[to].call.kind == Kind::alltoall;
            for (size_t from = 0; from < ranks; from++)
                std::memcpy(recv + from * n, sent[from].data() + (all_to_all ? to * n : 0), n);
            if (damage != nullptr) damage(recv, n * ranks);
        }
    }
    static void add(const std::vector<std::vector<uint8_t>> &sent, float *out, uint64_t n,
                    uint32_t op) {
        for (uint64_t i = 0; i < n; i++) {
            float sum = 0;
            for (auto &of_rank : sent) sum += reinterpret_cast<const float *>(of_rank.data())[i];
            out[i] = op == DTRAIN_AVG ? sum / float(sent.size()) : sum;
        }
    }

    std::vector<std::unique_ptr<dtrain::compression::Method>> methods_;
};
