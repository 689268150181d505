// Means over those that have pushed a row, against sums and sets that are kept naively in f64:
// every type, sums together and by worker, with weights, erased rows, dropped workers and full
// memory.
// SPDX-License-Identifier: Apache-2.0
#include "device/kernels.h"
#include "ps/storage/sparse_shard.h"
#include "ps/table/dtype.h"

#include "check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

using namespace dtrain::ps;

namespace {

constexpr uint32_t dim = 3, keys_in_use = 100;

struct Case {
    uint32_t dtype;
    bool apart;
    uint32_t workers;
};

TableParams params_of(const Case &of) {
    TableParams params;
    params.dim = dim;
    params.dtype = of.dtype;
    params.consistency = of.apart ? DTRAIN_QUORUM : DTRAIN_BSP;
    params.quorum = of.apart ? 1 : 0;
    params.aggregate = DTRAIN_AVG;
    params.mean_over = DTRAIN_MEAN_PUSHERS;
    if (is_half(of.dtype)) params.storage_dtype = DTRAIN_F32; // else rounded at random
    return params;
}

double number(uint32_t dtype, const char *values, uint64_t i) {
    return visit_dtype(dtype, [&]<class T>() -> double {
        T value;
        std::memcpy(&value, values + i * sizeof value, sizeof value);
        if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>)
            return to_float(value);
        else
            return double(value);
    });
}

double tolerance(uint32_t dtype) {
    switch (dtype) {
    case DTRAIN_F64: return 1e-13;
    case DTRAIN_F32: return 1e-5;
    case DTRAIN_F16: return 2e-3;
    case DTRAIN_BF16: return 1e-2;
    default: return 0;
    }
}

class Run {
  public:
    explicit Run(const Case &of)
        : of_(of), params_(params_of(of)), random_(of.dtype * 100 + of.workers * 2 + of.apart),
          shard_(params_, nullptr, of.workers), sums_(of.apart ? of.workers : open_clocks) {}

    void go() {
        assert_int_equal(first_bad_field(params_), field_count);
        for (int i = 0; i < 400; i++) {
            const uint64_t choice = pick(12);
            if (choice < 9)
                push(choice == 0);
            else if (choice < 10)
                erase();
            else
                apply();
        }
    }
    uint32_t refused() const { return refused_; } // pushes

  private:
    struct Sum {
        std::vector<double> values = std::vector<double>(dim);
        std::map<uint32_t, double> pushers = {}; // with what they count
    };
    uint64_t pick(uint64_t below) { return random_() % below; }
    static uint64_t key_of(uint64_t number) { return number * 0x9e3779b97f4a7c15; }
    std::vector<uint64_t> some_keys(uint64_t most) {
        std::set<uint64_t> keys;
        for (uint64_t i = 1 + pick(most); i > 0; i--) keys.insert(key_of(pick(keys_in_use)));
        std::vector<uint64_t> out(keys.begin(), keys.end());
        std::shuffle(out.begin(), out.end(), random_);
        return out;
    }
    double weight_of(uint32_t worker, uint64_t clock) const {
        constexpr double weights[] = {1, 0.25, 7, 40};
        return is_float(of_.dtype) ? weights[(worker * 3 + clock) % 4] : 1;
    }

    void push(bool has_little_room) {
        const auto worker = uint32_t(pick(of_.workers));
        const uint64_t clock = clock_ + (of_.apart ? 0 : pick(open_clocks));
        const auto sum = of_.apart ? worker : uint32_t(clock % open_clocks);
        const std::vector<uint64_t> keys = some_keys(12);
        const uint32_t dtype = computed_dtype(params_);
        const uint64_t size = dtrain::device::dtype_size(dtype);
        std::vector<char> g(keys.size() * dim * size);
        for (uint64_t i = 0; i < keys.size() * dim; i++)
            fill(dtype, &g[i * size], 1, double(pick(8)));
        if (has_little_room) shard_.set_limit(shard_.memory() + pick(200));
        const double weight = weight_of(worker, clock);
        const Reason reason =
            shard_.collect(sum, keys.data(), keys.size(), g.data(), weight, worker);
        shard_.set_limit(UINT64_MAX);
        refused_ += reason != Reason::none;
        if (reason != Reason::none) return assert_int_equal(reason, Reason::rows_limit);
        for (uint64_t i = 0; i < keys.size(); i++) {
            Sum &its = sums_[sum][keys[i]];
            for (uint32_t c = 0; c < dim; c++)
                its.values[c] += weight * number(dtype, g.data(), i * dim + c);
            its.pushers[worker] = weight;
        }
    }

    void erase() {
        const std::vector<uint64_t> keys = some_keys(6);
        shard_.erase(keys.data(), keys.size());
        for (const uint64_t key : keys) {
            rows_.erase(key);
            for (auto &sum : sums_) sum.erase(key);
        }
    }

    void apply() {
        ClockUpdate update = {clock_, {}, 12345}; // by which nothing is divided
        std::map<uint64_t, Sum> all;
        for (uint32_t sum = 0; sum < sums_.size(); sum++) {
            if (of_.apart && pick(3) == 0) {
                shard_.drop(sum);
                sums_[sum].clear();
            }
            if (!of_.apart && sum != clock_ % open_clocks) continue;
            update.sums.push_back(sum);
            for (const auto &[key, its] : sums_[sum]) {
                for (uint32_t c = 0; c < dim; c++) all[key].values[c] += its.values[c];
                all[key].pushers.insert(its.pushers.begin(), its.pushers.end());
            }
            sums_[sum].clear();
        }
        for (const auto &[key, its] : all) {
            double divisor = 0;
            for (const auto &[worker, weight] : its.pushers) divisor += weight;
            std::vector<double> &row = rows_.try_emplace(key, dim).first->second;
            for (uint32_t c = 0; c < dim; c++) {
                const double mean = its.values[c] / divisor;
                row[c] += is_float(of_.dtype) ? mean : std::trunc(mean);
            }
        }
        assert_int_equal(shard_.apply(update), Reason::none);
        clock_++;
        compare();
    }

    void compare() {
        for (uint64_t i = 0; i < keys_in_use; i++) {
            const uint64_t key = key_of(i);
            const auto is = shard_.gather(&key, 1);
            for (uint32_t c = 0; c < dim; c++) {
                const auto row = rows_.find(key);
                const double due = row == rows_.end() ? 0 : row->second[c];
                const double got = number(of_.dtype, is->at(0), c);
                const bool byte = of_.dtype == DTRAIN_I8 || of_.dtype == DTRAIN_U8; // wraps around
                const double off = byte ? std::fmod(got - due, 256) : got - due;
                if (std::fabs(off) > tolerance(of_.dtype) * (1 + std::fabs(due)))
                    fail_msg("dtype %u, %s, %u workers: row %u is %.9g, not %.9g", of_.dtype,
                             of_.apart ? "apart" : "together", of_.workers, uint32_t(i), got, due);
            }
        }
    }

    const Case of_;
    const TableParams params_;
    std::mt19937_64 random_;
    SparseShard shard_;
    std::vector<std::map<uint64_t, Sum>> sums_;
    std::map<uint64_t, std::vector<double>> rows_;
    uint64_t clock_ = 0;
    uint32_t refused_ = 0;
};

void rows_are_divided_by_their_pushers(void **) {
    uint32_t refused = 0;
    for (uint32_t dtype = DTRAIN_F32; dtype <= DTRAIN_U64; dtype++)
        for (bool apart : {false, true})
            for (uint32_t workers : {1u, 3u, 64u, 130u}) {
                Run run({dtype, apart, workers});
                run.go();
                refused += run.refused();
            }
    print_message("%u pushes had no room\n", refused);
    assert_true(refused > 100);
}

// So that limits are kept.
void their_memory_counts(void **) {
    for (uint32_t workers : {64u, 65u}) {
        TableParams params = params_of({DTRAIN_F32, false, workers});
        SparseShard over_pushers(params, nullptr, workers);
        params.mean_over = DTRAIN_MEAN_WORKERS;
        SparseShard over_all(params, nullptr, workers);
        constexpr uint64_t count = 1000, words[] = {1, 2};
        std::vector<uint64_t> keys(count);
        for (uint64_t i = 0; i < count; i++) keys[i] = i;
        const std::vector<float> g(count * dim, 1);
        for (SparseShard *shard : {&over_pushers, &over_all})
            assert_int_equal(shard->collect(0, keys.data(), count, g.data()), Reason::none);
        assert_int_equal(over_pushers.memory() - over_all.memory(),
                         count * (sizeof(double) + words[workers > 64] * sizeof(uint64_t)));
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_divided_by_their_pushers),
        cmocka_unit_test(their_memory_counts),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
