// All ranks' negotiations in one thread, joined by the obvious all-reduce and all-gather.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "gradients/negotiation.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace world {

using namespace dtrain;
using namespace dtrain::gradients;

struct Rank {
    std::unique_ptr<Negotiation> negotiation;
    std::map<std::string, int> submitted, finished; // how often, by name
    std::map<uint64_t, std::string> names;          // of ids that wait
    std::map<std::string, std::pair<Status, std::string>> failed;
    std::vector<std::string> warnings;
    int32_t last_joined = -1, closed_by = -1;
    bool joined = false; // as far as this rank's user can know
    uint64_t ids = 0;
};

class World {
  public:
    explicit World(int size, const Limits &limits = {}) : limits_(limits) {
        for (int r = 0; r < size; r++) {
            ranks.emplace_back();
            ranks.back().negotiation = std::make_unique<Negotiation>(r, size, limits);
        }
    }

    Status submit(int r, const std::string &name, TensorSpec spec, int32_t priority = 0,
                  int64_t expires_ns = INT64_MAX) {
        Rank &rank = ranks[size_t(r)];
        Submission s = {name, spec, priority, ++rank.ids, now_ns, expires_ns};
        Status status = rank.negotiation->submit(std::move(s));
        if (status != DTRAIN_OK) return status;
        rank.submitted[name]++;
        rank.names[rank.ids] = name;
        return DTRAIN_OK;
    }

    void join(int r) {
        ranks[size_t(r)].joined = true;
        ranks[size_t(r)].negotiation->join();
    }

    // One cycle of all ranks and the bucket that follows; its tensors' names, in order.
    std::vector<std::string> cycle() {
        Bits all;
        for (Rank &rank : ranks) {
            Bits words = rank.negotiation->begin(now_ns);
            if (all.empty()) all = words;
            assert_int_equal(words.size(), all.size()); // the all-reduce is the same on all ranks
            for (size_t w = 0; w < all.size(); w++) all[w] &= words[w];
        }
        longest_words = std::max(longest_words, all.size());
        cycles++;
        bool wanted = false;
        for (Rank &rank : ranks) {
            Actions actions;
            bool exchange = false;
            check(rank.negotiation->reduced(all, exchange, actions));
            carry_out(rank, actions);
            assert_true(&rank == &ranks[0] || exchange == wanted);
            wanted = exchange;
        }
        if (wanted) exchange_reports();
        return reduce();
    }

    // Until `quiet` cycles in a row reduced nothing.
    void run(int quiet = 2) {
        for (int idle = 0; idle < quiet;) idle = cycle().empty() ? idle + 1 : 0;
    }

    std::vector<Rank> ranks;
    int64_t now_ns = 1;
    size_t cycles = 0, exchanges = 0, longest_words = 0;
    std::vector<size_t> bucket_sizes; // in tensors

  private:
    static void check(Status s) {
        if (s != DTRAIN_OK) fail_msg("%s: %s", status_name(s), error_text());
    }

    void exchange_reports() {
        exchanges++;
        std::vector<std::vector<uint8_t>> reports;
        for (Rank &rank : ranks) {
            reports.push_back(rank.negotiation->announce(now_ns));
            assert_true(reports.back().size() <= rank.negotiation->longest_report());
        }
        std::vector<std::span<const uint8_t>> views(reports.begin(), reports.end());
        for (Rank &rank : ranks) {
            Actions actions;
            check(rank.negotiation->gathered(views, now_ns, actions));
            carry_out(rank, actions);
        }
    }

    static void carry_out(Rank &rank, const Actions &actions) {
        for (const Actions::Failure &f : actions.failures) {
            const std::string name = rank.names.at(f.id);
            rank.failed[name] = {f.status, f.text};
            rank.names.erase(f.id);
            rank.submitted[name]--;
        }
        rank.warnings.insert(rank.warnings.end(), actions.warnings.begin(), actions.warnings.end());
        if (actions.last_joined >= 0) {
            rank.last_joined = actions.last_joined;
            rank.joined = false;
        }
        if (actions.closed_by >= 0) rank.closed_by = actions.closed_by;
    }

    // All ranks reduce the same; who lacks a tensor has joined; nobody is a step ahead.
    std::vector<std::string> reduce() {
        Bucket first;
        bool any = false;
        std::vector<std::string> names;
        std::map<std::string, int> steps;
        for (Rank &rank : ranks) {
            Bucket bucket;
            bool has = rank.negotiation->next_bucket(bucket);
            if (&rank == &ranks[0]) {
                first = bucket;
                any = has;
            }
            assert_int_equal(has, any);
            if (!has) continue;
            compare(first, bucket);
            names.resize(bucket.items.size());
            for (size_t i = 0; i < bucket.items.size(); i++) {
                if (bucket.items[i].id == 0) {
                    assert_true(rank.joined);
                    continue;
                }
                names[i] = rank.names.at(bucket.items[i].id);
                int step = ++rank.finished[names[i]];
                auto [at, is_new] = steps.emplace(names[i], step);
                assert_true(is_new || at->second == step);
                rank.names.erase(bucket.items[i].id);
            }
            Actions actions;
            rank.negotiation->finished(bucket, actions);
            carry_out(rank, actions);
        }
        if (any) bucket_sizes.push_back(names.size());
        return names;
    }

    void compare(const Bucket &a, const Bucket &b) const {
        assert_int_equal(a.items.size(), b.items.size());
        assert_int_equal(a.bytes, b.bytes);
        assert_int_equal(a.dtype, b.dtype);
        assert_int_equal(a.op, b.op);
        assert_int_equal(a.in_pieces, b.in_pieces);
        assert_true(a.items.size() == 1 || a.bytes <= limits_.bucket_bytes);
        for (size_t i = 0; i < a.items.size(); i++) {
            assert_int_equal(a.items[i].tensor, b.items[i].tensor);
            assert_int_equal(a.items[i].bytes, b.items[i].bytes);
        }
    }

    const Limits limits_;
};

inline TensorSpec f32(uint64_t count, uint8_t op = DTRAIN_SUM) {
    return {.count = count, .dtype = DTRAIN_F32, .op = op};
}
inline std::string numbered(int i) { return "t" + std::to_string(i); }

} // namespace world
