// Functions are given many rows at a time, however a table lies and its pushes come, and are no
// other than the rule that does the same.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "ps/storage/shard.h"
#include "ps/storage/sparse_shard.h"

#include <cstdlib>
#include <random>

using namespace dtrain::ps;

namespace {

uint64_t first_seed() {
    const char *given = std::getenv("DTRAIN_TEST_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 0) : 20261122;
}

struct Calls {
    uint64_t updates = 0, aggregates = 0, rows = 0;
};

constexpr uint64_t poison = uint64_t{1} << 40;

// What is pushed for an element is a multiple of its number, from 1 on: so a row that stands
// elsewhere than its key says is found. Adds; fails, after it has added, where the factor is
// `poison`.
dtrain_status_t add(const dtrain_function_batch_t *batch) {
    bool bad = false;
    for (uint64_t r = 0; r < batch->count; ++r) {
        const dtrain_function_row_t &row = batch->rows[r];
        for (uint64_t i = 0; i < batch->dim; ++i) {
            const uint64_t pushed = static_cast<const uint64_t *>(row.pushed)[i];
            const uint64_t number = batch->params->dim > 0 ? 1 : row.key + i + 1;
            assert_int_equal(pushed % number, 0);
            static_cast<uint64_t *>(row.values)[i] += pushed;
            bad = bad || pushed / number == poison;
        }
    }
    return bad ? DTRAIN_ERR_LIMIT : DTRAIN_OK;
}
dtrain_status_t update(void *user, const dtrain_function_batch_t *batch) {
    auto &calls = *static_cast<Calls *>(user);
    ++calls.updates;
    calls.rows += batch->count;
    return add(batch);
}
dtrain_status_t aggregate(void *user, const dtrain_function_batch_t *batch) {
    ++static_cast<Calls *>(user)->aggregates;
    return add(batch);
}

dtrain_function_t adder(Calls &calls) {
    dtrain_function_t function = {};
    function.struct_size = sizeof function;
    function.abi = DTRAIN_FUNCTION_ABI;
    function.name = "add";
    function.user = &calls;
    function.update = update;
    function.aggregate = aggregate;
    return function;
}

TableParams dense(uint64_t length, uint64_t row, uint32_t reproducible) {
    TableParams params;
    params.length = length;
    params.row_length = row;
    params.dtype = DTRAIN_U64;
    params.consistency = DTRAIN_BSP;
    params.reproducible = reproducible;
    return params;
}
TableParams by_function(TableParams params) {
    params.rule = DTRAIN_RULE_FUNCTION;
    params.function = "add";
    return params;
}

std::vector<uint64_t> multiples(const Range &range, uint64_t factor) {
    std::vector<uint64_t> g(range.count);
    for (uint64_t i = 0; i < g.size(); ++i) g[i] = factor * (range.first + i + 1);
    return g;
}

// A table cut into blocks, of which every other is here.
Part every_other(uint64_t length, uint64_t block) {
    Part part;
    for (uint64_t first = 0; first < length; first += 2 * block) part.add({first, block});
    return part;
}

// 1 MiB from each of three workers, in requests of 256 KiB: as many calls as a worker has requests.
void calls_are_few(void **) {
    const uint64_t length = (1 << 20) / sizeof(uint64_t), at_once = chunk_bytes / sizeof(uint64_t);
    for (uint64_t row : {0, 1, 8, 1024})
        for (uint32_t apart : {0, 1})
            for (uint64_t block : {length, uint64_t{1024}}) {
                Calls calls;
                const dtrain_function_t function = adder(calls);
                const TableParams params = by_function(dense(2 * length, row, apart));
                const Part part = every_other(2 * length, block);
                auto shard = Shard::create(params, part, &function);
                for (uint32_t worker = 0; worker < 3; ++worker)
                    for (size_t run = 0; run < part.ranges(); ++run) {
                        Range range = part.range(run);
                        const std::vector<uint64_t> g = multiples(range, 1);
                        for (range.count = std::min(range.count, at_once);
                             range.first < part.range(run).end(); range.first += range.count)
                            assert_int_equal(
                                shard->collect(apart * worker, range,
                                               &g[range.first - part.range(run).first]),
                                Reason::none);
                    }
                const uint64_t requests = std::max<uint64_t>(4, part.ranges());
                assert_int_equal(calls.aggregates, apart != 0 ? 0 : 2 * requests);
                assert_int_equal(shard->apply({0, apart != 0 ? std::vector<uint32_t>{0, 1, 2}
                                                             : std::vector<uint32_t>{0}}),
                                 Reason::none);
                assert_int_equal(calls.aggregates, apart != 0 ? 2 * 4 : 2 * requests);
                assert_int_equal(calls.updates, 4);
                assert_int_equal(calls.rows, row > 0 ? length / row : requests);
            }
}

void rows_of_keys_are_combined_in_batches(void **) {
    Calls calls;
    const dtrain_function_t function = adder(calls);
    TableParams params = by_function(dense(0, 0, 1));
    params.dim = 4;
    SparseShard shard(params, &function);
    std::vector<uint64_t> keys(1000), g(4 * keys.size(), 3);
    for (uint64_t i = 0; i < keys.size(); ++i) keys[i] = i * i;
    for (uint32_t worker = 0; worker < 3; ++worker)
        assert_int_equal(
            shard.collect(worker, keys.data() + worker, keys.size() - worker, g.data()),
            Reason::none);
    assert_int_equal(shard.apply({0, {0, 1, 2}}), Reason::none);
    assert_int_equal(calls.rows, keys.size());
    assert_int_equal(calls.updates, 8); // of 128 rows
    assert_int_equal(calls.aggregates, 16);
    const auto values = shard.gather(keys.data(), keys.size());
    for (uint64_t i = 0; i < 4 * keys.size(); ++i)
        assert_int_equal(reinterpret_cast<const uint64_t *>(values->at(0))[i],
                         3 * std::min<uint64_t>(i / 4 + 1, 3));
}

// Random pushes, of which some fail, next to the rule ADD, which gets the others.
void as_the_rule(uint64_t seed) {
    std::mt19937_64 random(seed);
    auto pick = [&](uint64_t below) { return random() % below; };
    constexpr uint64_t rows[] = {0, 1, 7, 24, 500};
    const uint64_t row = rows[pick(std::size(rows))], unit = std::max<uint64_t>(row, 1);
    const uint64_t block = unit * (1 + pick(10000 / unit)), length = 2 * block * (1 + pick(4));
    const uint32_t apart = uint32_t(pick(2));
    Calls calls;
    const dtrain_function_t function = adder(calls);
    const TableParams params = dense(length, row, apart);
    const Part part = every_other(length, block);
    auto own = Shard::create(by_function(params), part, &function);
    auto rule = Shard::create(params, part);
    for (int clock = 0; clock < 3; ++clock) {
        for (uint64_t push = pick(40); push > 0; --push) {
            const Range &run = part.range(pick(part.ranges()));
            const uint64_t first = pick(block / unit) * unit;
            const uint64_t most = (block - first) / unit;
            const Range range = {run.first + first, unit * (1 + pick(pick(2) == 0 ? most : 1))};
            const uint32_t sum = uint32_t(apart * pick(3));
            std::vector<uint64_t> g = multiples(range, 1 + pick(1 << 20));
            if (pick(4) == 0) {
                const uint64_t at = pick(g.size());
                std::vector<uint64_t> bad = g;
                bad[at] = poison * (range.first + at + 1);
                assert_int_equal(own->collect(sum, range, g.data()), Reason::none);
                rule->collect(sum, range, g.data()); // what is the first is not combined
                assert_int_equal(own->collect(sum, range, bad.data()), Reason::told);
            }
            assert_int_equal(own->collect(sum, range, g.data()), Reason::none);
            rule->collect(sum, range, g.data());
        }
        const ClockUpdate update = {uint64_t(clock), apart != 0 ? std::vector<uint32_t>{0, 1, 2}
                                                                : std::vector<uint32_t>{0}};
        assert_int_equal(own->apply(update), Reason::none);
        assert_int_equal(rule->apply(update), Reason::none);
        for (size_t run = 0; run < part.ranges(); ++run)
            assert_memory_equal(own->at(part.range(run).first), rule->at(part.range(run).first),
                                block * sizeof(uint64_t));
    }
}

void a_function_that_adds_is_the_rule(void **) {
    const uint64_t start = first_seed();
    print_message("seeds from %llu\n", static_cast<unsigned long long>(start));
    for (uint64_t seed = start; seed < start + 200; ++seed) as_the_rule(seed);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_few),
        cmocka_unit_test(rows_of_keys_are_combined_in_batches),
        cmocka_unit_test(a_function_that_adds_is_the_rule),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
