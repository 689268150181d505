// Reproducible tables: the same bits, whatever the order in which messages come.
// SPDX-License-Identifier: Apache-2.0
#include "ps/client/client_table.h"
#include "ps/client/row_batch.h"
#include "sim_network.h"

#include "check.h"
#include "repeats.h"

#include <cmath>
#include <optional>

using namespace dtrain::ps;

namespace {

constexpr uint32_t workers = 3, servers = 2, clocks = 4, pushes = 3;
constexpr uint64_t length = 40;

struct Op {
    Transfer transfer;
    std::vector<float> values;
    std::vector<uint64_t> keys;
    bool done = false;
};

// Values whose sum depends on the order, and ranges that overlap.
float value_of(uint64_t worker, uint64_t clock, uint64_t push, uint64_t element) {
    return std::ldexp(1.0f + float(element % 7) / 8, int(worker * 9 + push * 5 + clock * 3) % 31);
}

class Run {
  public:
    Run(uint64_t seed, const TableParams &params)
        : params_(params),
          network_(seed, workers, servers,
                   {.longest_delay = 30, .lost = 10, .repeated = 10, .busy = 20}, config()) {}

    std::vector<float> values() {
        for (uint32_t w = 0; w < workers; ++w) {
            assert_int_equal(network_.client(w)->open("t", params_, tables_[w]), DTRAIN_OK);
            start(w, RequestKind::create);
        }
        while (open() && network_.step()) {
        }
        // Everything at once: the window and the network mix it up.
        for (uint64_t clock = 0; clock < clocks; ++clock)
            for (uint32_t w = 0; w < workers; ++w) {
                for (uint64_t p = 0; p < pushes; ++p) push(w, clock, p);
                start(w, RequestKind::clock);
            }
        Op &pull = start(0, RequestKind::pull, length);
        while (open() && network_.step()) {
        }
        assert_true(pull.done);
        for (const auto &op : ops_) assert_int_equal(op->transfer.status, DTRAIN_OK);
        return pull.values;
    }

  private:
    static Client::Config config() {
        Client::Config config;
        config.chunk = 32;
        config.retry_ns = 100;
        return config;
    }
    bool open() const {
        return std::any_of(ops_.begin(), ops_.end(), [](const auto &op) { return !op->done; });
    }
    void push(uint32_t w, uint64_t clock, uint64_t p) {
        start(w, RequestKind::push, length, [&](uint64_t e) { return value_of(w, clock, p, e); });
    }
    Op &start(uint32_t w, RequestKind kind, uint64_t count = 0,
              const std::function<float(uint64_t)> &value = nullptr) {
        ops_.push_back(std::make_unique<Op>());
        Op &op = *ops_.back();
        op.values.resize(count);
        for (uint64_t e = 0; e < count; ++e) {
            op.keys.push_back(e * 0x9e3779b97f4a7c15);
            if (value != nullptr) op.values[e] = value(e);
        }
        const bool sparse = is_sparse(params_) && count > 0;
        if (sparse)
            kind = kind == RequestKind::push ? RequestKind::push_rows : RequestKind::pull_rows;
        op.transfer.kind = kind;
        op.transfer.table = tables_[w];
        op.transfer.range = {0, count};
        op.transfer.send = op.transfer.receive = op.values.data();
        if (sparse)
            op.transfer.rows = std::make_shared<RowBatch>(
                *tables_[w],
                RowBatch::Call{kind, op.keys.data(), count, op.values.data(), op.values.data()});
        op.transfer.owner = &op;
        op.transfer.done = [](Transfer *transfer) {
            static_cast<Op *>(transfer->owner)->done = true;
        };
        network_.client(w)->start(op.transfer, network_.now());
        return op;
    }

    const TableParams params_;
    SimNetwork network_;
    ClientTable *tables_[workers] = {};
    std::vector<std::unique_ptr<Op>> ops_;
};

TableParams params_of(uint32_t consistency, bool sparse, uint32_t reproducible) {
    TableParams params;
    params.length = sparse ? 0 : length;
    params.dim = sparse ? 1 : 0;
    params.dtype = DTRAIN_F32;
    params.consistency = consistency;
    params.quorum = consistency == DTRAIN_QUORUM ? workers : 0;
    params.reproducible = reproducible;
    return params;
}

// Schedules whose result differs from that of the first one.
uint32_t count_different(const TableParams &params) {
    uint32_t different = 0;
    std::optional<std::vector<float>> first;
    for (uint64_t seed = 1; seed <= dtrain::test::repeats(100); ++seed) {
        std::vector<float> values = Run(seed, params).values();
        if (!first.has_value()) first = values;
        different += std::memcmp(values.data(), first->data(), length * sizeof(float)) != 0;
    }
    return different;
}

void sums_have_the_same_bits(void **) {
    for (uint32_t consistency : {DTRAIN_BSP, DTRAIN_QUORUM})
        for (bool sparse : {false, true})
            assert_int_equal(count_different(params_of(consistency, sparse, 1)), 0);
}

void without_it_they_have_not(void **) {
    assert_true(count_different(params_of(DTRAIN_BSP, false, 0)) > dtrain::test::repeats(50));
    assert_true(count_different(params_of(DTRAIN_BSP, true, 0)) > dtrain::test::repeats(50));
}

// By one worker after the other, each in the order of its calls.
void sums_are_made_in_the_order_of_ranks(void **) {
    const std::vector<float> values = Run(7, params_of(DTRAIN_BSP, false, 1)).values();
    for (uint64_t e = 0; e < length; ++e) {
        float due = 0;
        for (uint64_t clock = 0; clock < clocks; ++clock) {
            float sum = 0;
            for (uint64_t w = 0; w < workers; ++w) {
                float mine = 0;
                for (uint64_t p = 0; p < pushes; ++p) mine += value_of(w, clock, p, e);
                sum += mine;
            }
            due += sum;
        }
        assert_true(values[e] == due);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(sums_have_the_same_bits),
        cmocka_unit_test(without_it_they_have_not),
        cmocka_unit_test(sums_are_made_in_the_order_of_ranks),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
