// Values in fewer bytes: rounding, blocks, and shards that keep them, next to shards of f32.
// SPDX-License-Identifier: Apache-2.0
#include "dtrain_function.h"
#include "ps/storage/dense_values.h"
#include "ps/storage/shard.h"
#include "ps/storage/sparse_shard.h"
#include "ps/table/narrow.h"
#include "ps/table/rules.h"

#include "check.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

using namespace dtrain::ps;

namespace {

constexpr uint32_t narrow_dtypes[] = {DTRAIN_F16, DTRAIN_BF16, DTRAIN_I8};
constexpr uint64_t counts[] = {1, 2, 3, 16, 127, 128, 129, 255, 256, 300, 512, 513, 1000, 4097};

uint64_t first_seed() {
    const char *given = std::getenv("DTRAIN_TEST_SEED");
    const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : 20261122;
    print_message("seed %llu\n", static_cast<unsigned long long>(seed));
    return seed;
}

std::vector<float> random_floats(std::mt19937_64 &random, uint64_t count, double size = 1) {
    std::normal_distribution<double> normal(0, size);
    std::vector<float> x(count);
    for (float &value : x) value = float(normal(random));
    return x;
}

// By how much a value may be off that is rounded to nearest; most: the largest of its block. At
// random it is twice as much.
double half_step(uint32_t dtype, double value, double most) {
    if (dtype == DTRAIN_F16) return std::max(std::fabs(value) * 0x1p-11, 0x1p-25);
    if (dtype == DTRAIN_BF16) return std::fabs(value) * 0x1p-8;
    return dtype == DTRAIN_I8 ? most / 127 * 0.5001 : 0;
}

double most_of(const float *x, uint64_t count) {
    double most = 0;
    for (uint64_t i = 0; i < count; i++) most = std::max(most, std::fabs(double(x[i])));
    return most;
}

std::vector<float> there_and_back(uint32_t dtype, const std::vector<float> &x,
                                  const Rounding &rounding = {}) {
    std::vector<char> bytes(row_bytes(dtype, x.size()) + 1, 0x55);
    write_row(bytes.data(), dtype, x.data(), x.size(), rounding);
    assert_int_equal(bytes.back(), 0x55);
    std::vector<float> back(x.size());
    read_row(back.data(), dtype, bytes.data(), x.size());
    return back;
}

void a_row_is_rounded_within_its_bounds(void **) {
    std::mt19937_64 random(first_seed());
    for (uint32_t dtype : narrow_dtypes)
        for (uint64_t count : counts)
            for (double size : {1e-3, 1.0, 300.0}) {
                const std::vector<float> x = random_floats(random, count, size);
                const std::vector<float> nearest = there_and_back(dtype, x);
                const std::vector<float> drawn = there_and_back(dtype, x, {true, count});
                for (uint64_t i = 0; i < count; i++) {
                    const uint64_t first = i / block_values * block_values;
                    const double most = most_of(&x[first], std::min(block_values, count - first));
                    const double bound = half_step(dtype, x[i], most);
                    assert_true(std::fabs(double(nearest[i]) - double(x[i])) <= bound);
                    assert_true(std::fabs(double(drawn[i]) - double(x[i])) <= 2 * bound);
                }
                assert_true(there_and_back(dtype, nearest) == nearest || dtype == DTRAIN_I8);
            }
}

void what_is_no_number_shows(void **) {
    for (uint64_t count : {3u, 128u, 300u})
        for (float special : {NAN, INFINITY, -INFINITY}) {
            std::vector<float> x(count, 1.0f);
            x[count - 1] = special;
            const std::vector<float> bytes = there_and_back(DTRAIN_I8, x);
            for (uint64_t i = 0; i < count; i++) // the block's, and no other
                assert_int_equal(std::isnan(bytes[i]),
                                 i / block_values == (count - 1) / block_values);
            for (uint32_t dtype : {DTRAIN_F16, DTRAIN_BF16}) {
                const std::vector<float> back = there_and_back(dtype, x);
                assert_true(std::isnan(special) ? std::isnan(back[count - 1])
                                                : back[count - 1] == special);
                for (uint64_t i = 0; i + 1 < count; i++) assert_true(back[i] == 1);
            }
        }
    const std::vector<float> zeros(200), huge = {FLT_MAX, -FLT_MAX, 0, FLT_MAX / 2};
    assert_true(there_and_back(DTRAIN_I8, zeros) == zeros);
    const std::vector<float> tiny = {FLT_MIN, -FLT_TRUE_MIN, 0};
    assert_true(there_and_back(DTRAIN_I8, tiny) == std::vector<float>(3)); // too small for a scale
    const std::vector<float> back = there_and_back(DTRAIN_I8, huge);
    assert_true(back[0] <= FLT_MAX && back[0] >= FLT_MAX * 0.999f && back[1] == -back[0]);
    assert_true(back[2] == 0 && std::fabs(back[3] / FLT_MAX - 0.5f) < 0.005f);
}

void rows_are_converted_as_by_f32(void **) {
    std::mt19937_64 random(first_seed());
    const uint32_t all[] = {DTRAIN_F32, DTRAIN_F16, DTRAIN_BF16, DTRAIN_I8};
    for (uint32_t from : all)
        for (uint32_t to : all)
            for (uint64_t count : counts) {
                const std::vector<float> x = random_floats(random, count);
                std::vector<char> in(row_bytes(from, count)), out(row_bytes(to, count)),
                    due(row_bytes(to, count));
                std::vector<float> wide(count);
                write_row(in.data(), from, x.data(), count);
                convert_row(out.data(), to, in.data(), from, count);
                read_row(wide.data(), from, in.data(), count);
                write_row(due.data(), to, wide.data(), count);
                assert_true(from == to ? out == in : out == due);
            }
}

TableParams dense_params(uint32_t storage, uint64_t length, uint64_t row_length = 0) {
    TableParams params;
    params.length = length;
    params.row_length = row_length;
    params.dtype = DTRAIN_F32;
    params.storage_dtype = storage;
    return params;
}

// Ranges that begin and end anywhere: the others of a block keep their bytes unless its scale
// grows, and then are off by half a step of the new one at most.
void ranges_leave_others_alone(void **) {
    std::mt19937_64 random(first_seed());
    for (uint32_t storage : narrow_dtypes)
        for (uint64_t row : {0u, 16u, 130u, 300u}) {
            const uint64_t length = row > 0 ? 4 * row : 1001;
            DenseValues values(dense_params(storage, length, row), length);
            assert_true(values.allocate());
            std::vector<float> before(length), after(length), scales_before(length);
            auto scale_of = [&](uint64_t i) {
                return i / values.row() * values.scales_of_row() + i % values.row() / block_values;
            };
            auto scale = [&](uint64_t i) {
                if (values.scales == nullptr) return 0.0f;
                return scale_at(values.scales->at(scale_of(i) * sizeof(float)));
            };
            for (int round = 0; round < 60; round++) {
                const uint64_t first = random() % length;
                const Range range = {first, 1 + random() % (length - first)};
                const std::vector<float> x =
                    random_floats(random, range.count, round % 7 == 0 ? 8 : 1);
                values.read({0, length}, before.data());
                for (uint64_t i = 0; i < length; i++) scales_before[scale_of(i)] = scale(i);
                values.write(range, x.data(), {});
                values.read({0, length}, after.data());
                for (uint64_t i = 0; i < length; i++) {
                    const bool written = i >= range.first && i < range.end();
                    const double due = written ? x[i - range.first] : before[i];
                    const double off = std::fabs(after[i] - due), most = 127 * scale(i);
                    const bool kept = scale(i) == scales_before[scale_of(i)];
                    if (written)
                        assert_true(off <= half_step(storage, due, most));
                    else if (storage != DTRAIN_I8 || kept)
                        assert_true(off == 0);
                    else
                        assert_true(off <= half_step(storage, due, most));
                }
                std::vector<float> part(range.count);
                values.read(range, part.data()); // as all of it
                assert_true(std::equal(part.begin(), part.end(),
                                       after.begin() + int64_t(range.first),
                                       after.begin() + int64_t(range.end())));
            }
        }
}

// int8 are sent as they are stored, to the bit, from the beginning of a block on and where the
// blocks of a request are those of the rows; elsewhere they are rounded once more.
void stored_int8_travel_as_they_are(void **) {
    std::mt19937_64 random(first_seed());
    for (uint64_t row : {0, 100, 128, 384, 500}) {
        TableParams params = dense_params(DTRAIN_I8, row > 0 ? 12 * row : 6000, row);
        auto wide = Shard::create(params, Range{0, params.length}); // sends f32
        params.wire_dtype = DTRAIN_I8;
        auto shard = Shard::create(params, Range{0, params.length});
        std::vector<float> x = random_floats(random, params.length);
        for (uint64_t i = 0; i < x.size(); i++) x[i] *= float(1 + i / 100 % 7); // scales differ
        shard->set({0, params.length}, x.data());
        wide->set({0, params.length}, x.data());
        uint64_t exact = 0;
        for (int round = 0; round < 400; round++) {
            const uint64_t width = row > 0 ? row : params.length;
            uint64_t first = random() % params.length;
            if (round % 2 == 0) first -= first % width % block_values;
            const Range range = {first, 1 + random() % (params.length - first)};
            const bool fits = first % width % block_values == 0 &&
                              (width % block_values == 0 || first % width + range.count <= width);
            std::vector<float> got(range.count), stored(range.count);
            read_row(got.data(), DTRAIN_I8, shard->as_sent(range)->at(0), range.count);
            read_row(stored.data(), DTRAIN_F32, wide->as_sent(range)->at(0), range.count);
            const double most = most_of(stored.data(), stored.size());
            for (uint64_t i = 0; i < range.count; i++)
                assert_true(fits ? got[i] == stored[i]
                                 : std::fabs(got[i] - stored[i]) <=
                                       half_step(DTRAIN_I8, stored[i], most));
            exact += fits;
        }
        assert_true(exact > 10);
    }
}

// A step of the table's rule from the values that are stored, in f32; what is kept of it is off by
// one rounding, and the state not at all.
struct Twins {
    Twins(const TableParams &params, bool sparse) {
        TableParams wide = params;
        wide.dtype = DTRAIN_F32;
        wide.storage_dtype = wide.wire_dtype = 0;
        assert_int_equal(first_bad_field(params), field_count);
        if (sparse) {
            rows = std::make_unique<SparseShard>(params);
            wide_rows = std::make_unique<SparseShard>(wide);
        } else {
            shard = Shard::create(params, Range{0, params.length});
            wide_shard = Shard::create(wide, Range{0, params.length});
        }
    }
    std::unique_ptr<Shard> shard, wide_shard;
    std::unique_ptr<SparseShard> rows, wide_rows;
};

constexpr uint64_t dim = 150, keys_in_use = 6; // two blocks; rows of the dense table likewise

TableParams rule_params(uint32_t rule, uint32_t storage, uint32_t consistency, bool sparse) {
    TableParams params = dense_params(storage, sparse ? 0 : dim * keys_in_use, sparse ? 0 : dim);
    params.dim = sparse ? dim : 0;
    params.rule = rule;
    params.consistency = consistency;
    params.quorum = consistency == DTRAIN_QUORUM ? 1 : 0;
    params.learning_rate = 0.03;
    params.initial = 0.5;
    params.seed = 5;
    return params;
}

void run_twins(const TableParams &params, std::mt19937_64 &random) {
    const bool sparse = is_sparse(params), nearest = !accumulates(params);
    Twins twins(params, sparse);
    const uint64_t length = dim * keys_in_use;
    std::vector<uint64_t> keys(keys_in_use);
    for (uint64_t i = 0; i < keys_in_use; i++) keys[i] = i * 0x9e3779b97f4a7c15;
    auto read = [&](Shard *dense, SparseShard *rows, const TableParams &its) {
        std::vector<float> values(length);
        const uint32_t wire = wire_dtype_of(its);
        auto held = sparse ? rows->gather(keys.data(), keys_in_use) : dense->as_sent({0, length});
        read_row(values.data(), wire, held->at(0), length);
        if (is_half(its.dtype) && its.storage_dtype != 0) // a master copy
            std::memcpy(values.data(), dense->at(0), length * sizeof(float));
        return values;
    };
    TableParams wide_params;
    wide_params.dtype = DTRAIN_F32;
    for (uint64_t step = 0; step < 6; step++) {
        const std::vector<float> before = read(twins.shard.get(), twins.rows.get(), params);
        const std::vector<float> g = random_floats(random, length, 0.3);
        const uint64_t first = random() % keys_in_use, n = 1 + random() % (keys_in_use - first);
        for (bool wide : {true, false}) {
            Shard *dense = wide ? twins.wide_shard.get() : twins.shard.get();
            SparseShard *rows = wide ? twins.wide_rows.get() : twins.rows.get();
            if (sparse && wide)
                assert_int_equal(rows->set(keys.data(), keys_in_use, before.data()), Reason::none);
            else if (wide)
                dense->set({0, length}, before.data());
            const float *its = &g[first * dim];
            const Range range = {first * dim, n * dim};
            if (!collects(params)) {
                assert_int_equal(sparse ? rows->push(&keys[first], n, its, true)
                                        : dense->push(range, its, true),
                                 Reason::none);
                continue;
            }
            const auto sum = uint32_t(step % 2);
            for (int twice = 0; twice < 2; twice++)
                assert_int_equal(sparse ? rows->collect(sum, &keys[first], n, its)
                                        : dense->collect(sum, range, its),
                                 Reason::none);
            const ClockUpdate update = {step, {sum}, 2};
            assert_int_equal(sparse ? rows->apply(update) : dense->apply(update), Reason::none);
        }
        const std::vector<float> due =
            read(twins.wide_shard.get(), twins.wide_rows.get(), wide_params);
        const std::vector<float> is = read(twins.shard.get(), twins.rows.get(), params);
        for (uint64_t i = 0; i < length; i++) {
            const uint64_t row = i / dim * dim,
                           block = row + (i - row) / block_values * block_values;
            const double most = most_of(&due[block], std::min(block_values, row + dim - block));
            const double bound =
                half_step(storage_dtype_of(params), due[i], most) * (nearest ? 1.0001 : 2.0002);
            const bool pushed = i >= first * dim && i < (first + n) * dim;
            if (std::fabs(double(is[i]) - double(due[i])) > bound ||
                (!pushed && is[i] != before[i]))
                fail_msg("rule %u, storage %u, mode %u, step %llu: element %llu is %.9g, not %.9g",
                         params.rule, params.storage_dtype, params.consistency,
                         static_cast<unsigned long long>(step), static_cast<unsigned long long>(i),
                         double(is[i]), double(due[i]));
        }
    }
    assert_int_equal(sparse ? twins.rows->updates() : twins.shard->updates(), 6);
}

void every_rule_rounds_once(void **) {
    std::mt19937_64 random(first_seed());
    for (uint32_t rule : builtin_rules())
        for (uint32_t storage : narrow_dtypes)
            for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_BSP, DTRAIN_SSP, DTRAIN_QUORUM})
                for (bool sparse : {false, true}) {
                    TableParams params = rule_params(rule, storage, consistency, sparse);
                    if (first_bad_field(params) == field_count) run_twins(params, random);
                    params.clip_norm = 1;
                    params.l2 = 0.01;
                    params.weight_decay = 0.01;
                    if (first_bad_field(params) == field_count) run_twins(params, random);
                }
}

// Tables of f16 and bf16 themselves; as f32 they are off by nothing.
void halves_round_once(void **) {
    std::mt19937_64 random(first_seed());
    for (uint32_t rule : builtin_rules())
        for (uint32_t dtype : {DTRAIN_F16, DTRAIN_BF16})
            for (uint32_t storage : {uint32_t{0}, uint32_t{DTRAIN_F32}})
                for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_BSP})
                    for (bool sparse : {false, true}) {
                        if (sparse && storage != 0) continue; // a pull rounds
                        TableParams params = rule_params(rule, storage, consistency, sparse);
                        params.dtype = dtype;
                        if (first_bad_field(params) == field_count) run_twins(params, random);
                    }
}

// Gradients far below half a step of int8: their sum counts, on average.
void small_updates_are_not_lost(void **) {
    for (bool sparse : {false, true}) {
        TableParams params = rule_params(DTRAIN_RULE_ADD, DTRAIN_I8, DTRAIN_ASYNC, sparse);
        params.initial = 0;
        Twins twins(params, sparse);
        const uint64_t key = 7;
        std::vector<float> g(dim);
        g[0] = g[149] = 1; // the steps of both blocks are 1 / 127
        constexpr int pushes = 1000;
        const float small = 0.5f / pushes; // 0.06 of a step
        for (int i = 0; i <= pushes; i++) {
            if (sparse)
                (void)twins.rows->push(&key, 1, g.data(), true);
            else
                (void)twins.shard->push({0, dim}, g.data(), true);
            std::fill(g.begin(), g.end(), small);
            g[0] = g[149] = 0;
        }
        auto held = sparse ? twins.rows->gather(&key, 1) : twins.shard->as_sent({0, dim});
        std::vector<float> values(dim);
        std::memcpy(values.data(), held->at(0), dim * sizeof(float));
        double sum = 0;
        for (uint64_t i = 1; i + 1 < dim; i++) sum += double(values[i]);
        const double mean = sum / (dim - 2);
        // 1000 steps of 1/127 with the probability 0.06 deviate by 0.06, the mean of 148 by 0.005.
        assert_true(std::fabs(mean - 0.5) < 0.025);
        assert_true(values[0] == 1 && values[149] == 1);
    }
}

// The same pushes give the same bytes; with another seed they are rounded otherwise.
void rounding_is_a_function_of_seed_and_history(void **) {
    auto run = [](uint64_t seed, uint64_t key) {
        TableParams params = rule_params(DTRAIN_RULE_SGD, DTRAIN_I8, DTRAIN_ASYNC, true);
        params.seed = seed;
        SparseShard shard(params);
        std::mt19937_64 random(1);
        for (int i = 0; i < 20; i++)
            (void)shard.push(&key, 1, random_floats(random, dim).data(), true);
        auto held = shard.gather(&key, 1);
        return std::vector<char>(held->at(0), held->at(dim * sizeof(float)));
    };
    assert_true(run(1, 3) == run(1, 3));
    assert_true(run(1, 3) != run(2, 3));
    assert_true(run(1, 3) != run(1, 4));
}

// A function that adds, and shows twice the values.
const dtrain_function_t &adding_function() {
    static constexpr auto add = [](void *, const dtrain_function_batch_t *batch) {
        for (uint64_t r = 0; r < batch->count; ++r)
            for (uint64_t i = 0; i < batch->dim; ++i)
                static_cast<float *>(batch->rows[r].values)[i] +=
                    static_cast<const float *>(batch->rows[r].pushed)[i];
        return dtrain_status_t{DTRAIN_OK};
    };
    static constexpr auto get = [](void *, const dtrain_function_batch_t *batch) {
        for (uint64_t r = 0; r < batch->count; ++r)
            for (uint64_t i = 0; i < batch->dim; ++i)
                static_cast<float *>(batch->rows[r].pulled)[i] =
                    2 * static_cast<float *>(batch->rows[r].values)[i];
        return dtrain_status_t{DTRAIN_OK};
    };
    static const dtrain_function_t function = [] {
        dtrain_function_t f = {};
        f.struct_size = sizeof f;
        f.abi = DTRAIN_FUNCTION_ABI;
        f.name = "add";
        f.update = add;
        f.get = get;
        return f;
    }();
    return function;
}

// It is given f32, and what it makes of them is stored and travels as any rule's.
void functions_see_floats(void **) {
    std::mt19937_64 random(first_seed());
    const std::vector<float> g = random_floats(random, dim * keys_in_use);
    const double most = most_of(g.data(), g.size());
    std::vector<uint64_t> keys = {4, 8, 15, 16, 23, 42};
    for (uint32_t storage : narrow_dtypes)
        for (uint32_t wire : {DTRAIN_F32, DTRAIN_F16, DTRAIN_I8})
            for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_BSP})
                for (bool sparse : {false, true}) {
                    TableParams params =
                        rule_params(DTRAIN_RULE_FUNCTION, storage, consistency, sparse);
                    params.function = "add";
                    params.initial = 0;
                    params.wire_dtype = wire == DTRAIN_F32 ? 0 : wire;
                    assert_int_equal(first_bad_field(params), field_count);
                    SparseShard rows(params, &adding_function());
                    auto shard = Shard::create(params, Range{0, params.length}, &adding_function());
                    const Range all = {0, params.length};
                    if (collects(params)) {
                        assert_int_equal(sparse
                                             ? rows.collect(0, keys.data(), keys_in_use, g.data())
                                             : shard->collect(0, all, g.data()),
                                         Reason::none);
                        assert_int_equal(sparse ? rows.apply({0, {0}}) : shard->apply({0, {0}}),
                                         Reason::none);
                    } else {
                        assert_int_equal(sparse
                                             ? rows.push(keys.data(), keys_in_use, g.data(), true)
                                             : shard->push(all, g.data(), true),
                                         Reason::none);
                    }
                    std::shared_ptr<const Buffer> out;
                    assert_int_equal(sparse ? rows.transform(keys.data(), keys_in_use, out)
                                            : shard->transform(all, out),
                                     Reason::none);
                    std::vector<float> got(g.size());
                    for (uint64_t i = 0; i < (sparse ? keys_in_use : 1); i++) {
                        const uint64_t count = sparse ? dim : g.size();
                        read_row(&got[i * count], wire, out->at(i * row_bytes(wire, count)), count);
                    }
                    for (uint64_t i = 0; i < g.size(); i++)
                        assert_true(std::fabs(double(got[i]) - 2 * double(g[i])) <=
                                    4 * half_step(storage, most, most) +
                                        half_step(wire, 2 * most, 2.02 * most));
                }
}

void memory_is_a_quarter(void **) {
    TableParams params = dense_params(DTRAIN_I8, 1 << 20);
    assert_int_equal(Shard::bytes_needed(params, 1 << 20, 1), (1 << 20) + (1 << 20) / 128 * 4);
    params.storage_dtype = DTRAIN_BF16;
    assert_int_equal(Shard::bytes_needed(params, 1 << 20, 1), 2 << 20);
    params.storage_dtype = 0;
    assert_int_equal(Shard::bytes_needed(params, 1 << 20, 1), 4 << 20);
    params = rule_params(DTRAIN_RULE_ADD, DTRAIN_I8, DTRAIN_ASYNC, true);
    assert_int_equal(RowLayout(params).bytes, dim + 2 * 4);
    params.rule = DTRAIN_RULE_ADAGRAD; // state stays f32, and aligned
    assert_int_equal(RowLayout(params).bytes, (dim + 2 * 4 + 3) / 4 * 4 + dim * 4);
}

void what_makes_no_sense_is_refused(void **) {
    auto says = [](uint32_t dtype, uint32_t storage, uint32_t wire, uint32_t columns, uint64_t row,
                   const char *text) {
        dtrain_table_params_t given = {};
        given.struct_size = sizeof given;
        given.dtype = dtype;
        given.storage_dtype = storage;
        given.wire_dtype = wire;
        given.dim = columns;
        given.row_length = row;
        given.length = columns > 0 ? 0 : 1024;
        TableParams params;
        const dtrain::Status status = resolve(given, "t", params);
        if (text == nullptr) {
            assert_int_equal(status, DTRAIN_OK);
            assert_int_equal(params.storage_dtype, storage == dtype ? 0 : storage);
            assert_int_equal(params.wire_dtype, wire == dtype ? 0 : wire);
            return;
        }
        assert_int_equal(status, DTRAIN_ERR_INVALID);
        assert_non_null(std::strstr(dtrain::error_text(), text));
    };
    says(DTRAIN_F32, 0, 0, 0, 0, nullptr);
    says(DTRAIN_I8, 0, DTRAIN_I8, 0, 0, nullptr);
    says(DTRAIN_F32, DTRAIN_F32, DTRAIN_I8, 2, 0, nullptr);
    says(DTRAIN_F32, DTRAIN_I8, DTRAIN_F32, 0, 2, nullptr);
    says(DTRAIN_F16, DTRAIN_F32, 0, 0, 0, nullptr);
    says(DTRAIN_BF16, DTRAIN_F32, DTRAIN_BF16, 1, 0, nullptr);
    says(DTRAIN_BF16, DTRAIN_F16, 0, 1, 0, "storage_dtype is not valid (the dtype");
    says(DTRAIN_F16, DTRAIN_I8, 0, 0, 0, "storage_dtype is not valid (the dtype");
    says(DTRAIN_F64, DTRAIN_F32, 0, 0, 0, "storage_dtype is not valid (the dtype");
    says(DTRAIN_F16, 0, DTRAIN_F32, 0, 0, "wire_dtype is not valid (the dtype");
    says(DTRAIN_F32, DTRAIN_U8, 0, 0, 0, "storage_dtype");
    says(DTRAIN_F32, 0, 99, 0, 0, "wire_dtype");
    says(DTRAIN_F32, DTRAIN_I8, 0, 1, 0, "I8 needs rows of 2");
    says(DTRAIN_F32, 0, DTRAIN_I8, 1, 0, "I8 needs rows of 2");
    says(DTRAIN_F32, DTRAIN_I8, 0, 0, 1, "I8 needs rows of 2");
    TableParams params = dense_params(DTRAIN_BF16, 1 << 20, 1 << 20);
    params.rule = DTRAIN_RULE_LAMB;
    params.consistency = DTRAIN_BSP;
    assert_string_equal(field_name(first_bad_field(params)), "row_length");
    params.storage_dtype = 0;
    assert_int_equal(first_bad_field(params), field_count);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_rounded_within_its_bounds),
        cmocka_unit_test(what_is_no_number_shows),
        cmocka_unit_test(rows_are_converted_as_by_f32),
        cmocka_unit_test(ranges_leave_others_alone),
        cmocka_unit_test(stored_int8_travel_as_they_are),
        cmocka_unit_test(every_rule_rounds_once),
        cmocka_unit_test(halves_round_once),
        cmocka_unit_test(small_updates_are_not_lost),
        cmocka_unit_test(rounding_is_a_function_of_seed_and_history),
        cmocka_unit_test(functions_see_floats),
        cmocka_unit_test(memory_is_a_quarter),
        cmocka_unit_test(what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests_name("narrow", tests, nullptr, nullptr);
}
