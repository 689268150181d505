// A push that has no room on a server changes nothing on any: thousands of schedules of pushes near
// a table's limit, with delays, losses, repetitions, erased rows, and pushes that are given up.
// SPDX-License-Identifier: Apache-2.0
#include "ps/client/client_table.h"
#include "ps/client/row_batch.h"
#include "ps/placement/placement_map.h"
#include "sim_network.h"

#include "check.h"

#include <algorithm>
#include <cstdlib>

using namespace dtrain::ps;

namespace {

constexpr uint64_t lasting = 200, erased = 100; // keys of each kind
constexpr uint32_t rows_of_push = 60;           // at most
constexpr uint32_t rounds = 6;
constexpr uint32_t most_pushes = 60; // each adds a bit of its own

struct Outcome {
    uint32_t refused = 0, of_several_servers = 0, given_up = 0;
};

struct Case {
    uint64_t seed;
    uint32_t consistency;
    bool times_out = false, dies = false;
};

uint64_t key_of(uint64_t number) { return (number + 1) * 0x9e3779b97f4a7c15; }

class Job {
  public:
    explicit Job(const Case &c)
        : case_(c), random_(c.seed), workers_(1 + pick(3)), servers_(1 + pick(3)),
          network_(
              c.seed, workers_ + 1, servers_,
              {1 + int64_t(pick(60)), uint32_t(pick(15)), uint32_t(pick(15)), uint32_t(pick(15))},
              config()),
          tables_(workers_ + 1), busy_(workers_ + 1), rounds_(workers_ + 1) {
        params_.dim = 1;
        params_.dtype = DTRAIN_U64;
        params_.consistency = c.consistency;
        params_.staleness = c.consistency == DTRAIN_SSP;
        params_.max_bytes = 3000 + pick(4000);
        params_.placement.policy = DTRAIN_PLACE_HASH;
    }
    Outcome run() {
        for (uint32_t w = 0; w <= workers_; ++w) {
            (void)network_.client(w)->open("table", params_, tables_[w]);
            start(w, RequestKind::create);
        }
        if (case_.dies) kill_at(int64_t(pick(3000)));
        drain();
        check_bits();
        check_rooms();
        for (uint32_t w = 0; w <= workers_; ++w)
            if (int32_t(w) != dead_) assert_true(network_.client(w)->idle());
        return outcome_;
    }

  private:
    struct Op {
        Job *job;
        uint32_t worker, bit = 0;
        std::vector<uint64_t> keys, values;
        Transfer transfer;
        bool done = false, given_up = false;
    };

    static Client::Config config() {
        Client::Config config;
        config.chunk = 64; // four rows
        config.retry_ns = 300;
        return config;
    }
    uint64_t pick(uint64_t below) { return random_() % below; }
    bool collects() const { return params_.consistency != DTRAIN_ASYNC; }
    void drain() {
        for (uint64_t steps = 0; network_.step(); ++steps) assert_true(steps < 2'000'000);
    }

    void kill_at(int64_t time) {
        network_.at(time, [this] {
            if (!ops_[workers_]->done)
                return kill_at(network_.now() + 100); // there is no table yet
            dead_ = 0;
            network_.kill_worker(0);
        });
    }

    void advance(uint32_t w) {
        if (int32_t(w) == dead_ || busy_[w] > 0 || rounds_[w] == rounds) return;
        ++rounds_[w];
        ++busy_[w]; // until all have been started
        for (uint64_t i = w < workers_ ? pick(4) : 0; i > 0; --i) {
            if (pick(3) == 0) start(w, RequestKind::erase_rows);
            if (next_bit_ < most_pushes) start(w, RequestKind::push_rows);
        }
        if (collects()) start(w, RequestKind::clock);
        end(w);
    }
    void end(uint32_t w) {
        if (--busy_[w] == 0) network_.at(network_.now() + 1, [this, w] { advance(w); });
    }

    Op &start(uint32_t w, RequestKind kind) {
        Op *op = ops_.emplace_back(std::make_unique<Op>()).get();
        op->job = this;
        op->worker = w;
        const bool pushes = kind == RequestKind::push_rows, pulls = kind == RequestKind::pull_rows;
        if (pulls)
            for (uint64_t i = 0; i < lasting; ++i) op->keys.push_back(key_of(i));
        if (pushes || kind == RequestKind::erase_rows) {
            const uint64_t from = pushes ? 0 : lasting;
            for (uint64_t i = 1 + pick(rows_of_push); i > 0; --i)
                op->keys.push_back(key_of(from + pick(lasting + erased - from)));
            std::sort(op->keys.begin(), op->keys.end());
            op->keys.erase(std::unique(op->keys.begin(), op->keys.end()), op->keys.end());
        }
        if (pushes) op->bit = next_bit_++;
        op->values.assign(op->keys.size(), uint64_t{1} << op->bit);
        Transfer &transfer = op->transfer;
        transfer.kind = kind;
        transfer.table = tables_[w];
        if (!op->keys.empty()) {
            const RowBatch::Call call = {kind, op->keys.data(), op->keys.size(),
                                         pushes ? op->values.data() : nullptr,
                                         pulls ? op->values.data() : nullptr};
            transfer.rows = std::make_shared<RowBatch>(*tables_[w], call);
            transfer.range = {0, op->keys.size()};
        }
        transfer.owner = op;
        transfer.done = [](Transfer *t) {
            auto *its = static_cast<Op *>(t->owner);
            its->done = true;
            its->job->end(its->worker);
        };
        ++busy_[w];
        network_.client(w)->start(transfer, network_.now());
        if (case_.times_out && pushes && pick(3) == 0)
            network_.at(network_.now() + int64_t(pick(800)), [this, op, w] {
                if (op->done) return;
                op->given_up = true;
                network_.client(w)->abandon(op->transfer, DTRAIN_ERR_TIMEOUT, "too slow");
            });
        return *op;
    }

    // What the text says of it: of every server either all rows of the push, or none.
    void check_bits() {
        const Op &seen = start(workers_, RequestKind::pull_rows);
        drain();
        if (!seen.done || seen.transfer.status != DTRAIN_OK)
            fail_msg("seed %llu: %d %s", static_cast<unsigned long long>(case_.seed),
                     int(seen.done), seen.transfer.text.c_str());
        const KeyPartition partition = make_key_partition(params_, servers_);
        for (const auto &op : ops_) {
            if (op->transfer.kind != RequestKind::push_rows || int32_t(op->worker) == dead_)
                continue;
            const dtrain_status_t status = op->transfer.status;
            assert_true(op->done);
            outcome_.given_up += op->given_up;
            if (op->given_up) continue;
            std::vector<uint32_t> with(servers_), without(servers_);
            for (uint64_t i = 0; i < lasting; ++i) {
                const uint64_t key = key_of(i);
                if (!std::binary_search(op->keys.begin(), op->keys.end(), key)) continue;
                const bool its = (seen.values[i] >> op->bit & 1) != 0;
                (its ? with : without)[partition.server_of(key)]++;
            }
            const std::string &text = op->transfer.text;
            uint32_t asked = 0;
            for (uint32_t s = 0; s < servers_; ++s) {
                if (with[s] > 0 && without[s] > 0)
                    fail_msg("seed %llu: a push was applied in part on server %u",
                             static_cast<unsigned long long>(case_.seed), s);
                if (status == DTRAIN_OK) assert_int_equal(without[s], 0);
                if (status != DTRAIN_OK && with[s] > 0)
                    fail_msg("seed %llu: %s, and was applied on server %u",
                             static_cast<unsigned long long>(case_.seed), text.c_str(), s);
                asked += without[s] > 0;
                if (without[s] > 0) {
                    const size_t none = text.find("; nothing of the push was applied on server");
                    assert_true(none != std::string::npos);
                    assert_true(text.find(std::to_string(s), none) != std::string::npos);
                }
            }
            if (status == DTRAIN_OK) continue;
            if (status != DTRAIN_ERR_LIMIT) fail_msg("%s", text.c_str());
            outcome_.refused++;
            outcome_.of_several_servers += asked > 1;
        }
    }

    // Nothing is kept for pushes that are over: that their workers leave frees nothing.
    void check_rooms() {
        if (collects()) return;
        Responses out;
        for (uint32_t s = 0; s < servers_; ++s) {
            const uint64_t before = network_.server(s)->memory_used();
            assert_true(before <= params_.max_bytes + 8 * erased); // the list of erased rows
            for (uint32_t w = 0; w < workers_; ++w) network_.server(s)->on_worker_left(w, out);
            assert_int_equal(network_.server(s)->memory_used(), before);
        }
    }

    const Case case_;
    std::mt19937_64 random_;
    const uint32_t workers_, servers_; // and a worker that only looks
    SimNetwork network_;
    TableParams params_;
    std::vector<ClientTable *> tables_;
    std::vector<uint32_t> busy_, rounds_;
    uint32_t next_bit_ = 0;
    int32_t dead_ = -1;
    std::vector<std::unique_ptr<Op>> ops_;
    Outcome outcome_;
};

void run_many(
    uint32_t consistency, void (*change)(Case &) = [](Case &) {}) {
    const char *given = std::getenv("DTRAIN_TEST_SEED");
    const uint64_t from = given != nullptr ? std::strtoull(given, nullptr, 0) : 20261125;
    print_message("seeds from %llu\n", static_cast<unsigned long long>(from));
    Outcome all;
    for (uint64_t seed = from; seed < from + 300; ++seed) {
        Case c = {.seed = seed, .consistency = consistency};
        change(c);
        const Outcome outcome = Job(c).run();
        all.refused += outcome.refused;
        all.of_several_servers += outcome.of_several_servers;
        all.given_up += outcome.given_up;
    }
    print_message("%u refused, %u of them for several servers; %u given up\n", all.refused,
                  all.of_several_servers, all.given_up);
    assert_true(all.refused > 100);
    assert_true(all.of_several_servers > 10);
}

void at_once(void **) { run_many(DTRAIN_ASYNC); }
void in_clocks(void **) { run_many(DTRAIN_BSP); }
void in_clocks_apart(void **) { run_many(DTRAIN_SSP); }
void beside_pushes_that_are_given_up(void **) {
    run_many(DTRAIN_ASYNC, [](Case &c) { c.times_out = true; });
    run_many(DTRAIN_BSP, [](Case &c) { c.times_out = true; });
}
void beside_a_lost_worker(void **) {
    run_many(DTRAIN_ASYNC, [](Case &c) { c.dies = true; });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(at_once),
        cmocka_unit_test(in_clocks),
        cmocka_unit_test(in_clocks_apart),
        cmocka_unit_test(beside_pushes_that_are_given_up),
        cmocka_unit_test(beside_a_lost_worker),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
