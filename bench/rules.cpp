// Throughput of the update rules: one line per rule and dtype on 64 KiB of values, and Adagrad row
// by row.
// SPDX-License-Identifier: Apache-2.0
//
// Usage: bench_rules [name of a rule]. Narrow values are computed as f32. GB/s are 1e9 bytes of
// VALUES per second, whatever else a rule reads and writes; everything lies in the cache. Rows have
// 64 f32, are updated by a call each, in the cache (64 rows) and all over 256 MiB of values and 256
// MiB of state (a million, in random order, prefetched one call ahead as a server with a list of
// rows can).
#include "ps/table/rules.h"
#include "device/kernels.h"
#include "ps/optimizer/update_rule.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace {

using namespace dtrain;
using namespace dtrain::ps;

constexpr uint64_t hot_bytes = 64 << 10, row_length = 64;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// The median of several samples, in units per second.
template <class F> double rate_of(double units, F &&run) {
    std::vector<double> rates;
    for (int i = 0; i < 9; i++) {
        uint64_t runs = 0;
        const double begin = now();
        double end = begin;
        for (; end - begin < 0.01; end = now(), runs++) run();
        rates.push_back(units * static_cast<double>(runs) / (end - begin));
    }
    std::sort(rates.begin(), rates.end());
    return rates[rates.size() / 2];
}

void *array(std::vector<std::unique_ptr<char[]>> &held, uint64_t bytes) {
    held.push_back(std::make_unique<char[]>(bytes + 64)); // zeroed
    auto address = reinterpret_cast<uintptr_t>(held.back().get());
    return held.back().get() + (64 - address % 64) % 64;
}

TableParams params_of(uint32_t rule, uint32_t dtype, uint64_t length) {
    TableParams params;
    params.length = params.row_length = length;
    params.rule = rule;
    params.dtype = dtype;
    params.initial = 1;
    return params;
}

void measure(uint32_t rule, uint32_t dtype) {
    const uint64_t count = hot_bytes / device::dtype_size(dtype);
    std::vector<std::unique_ptr<char[]>> held;
    RuleTarget target;
    target.values = array(held, hot_bytes);
    for (void *&slot : target.slots) slot = array(held, count * sizeof(double));
    void *g = array(held, hot_bytes);
    fill(dtype, target.values, count, 1);
    fill(dtype, g, count, 0.001);
    const UpdateRule update(params_of(rule, dtype, count));
    uint64_t step = 0;
    const double rate = rate_of(double(hot_bytes), [&] { update.apply(++step, target, g, count); });
    std::printf("%-13s %-5s %8.1f GB/s\n", rule_info(rule).name, device::dtype_name(dtype),
                rate / 1e9);
}

void measure_rows(uint64_t rows) {
    const uint64_t length = rows * row_length, bytes = length * sizeof(float);
    std::vector<std::unique_ptr<char[]>> held;
    auto *values = static_cast<float *>(array(held, bytes));
    auto *sums = static_cast<float *>(array(held, bytes));
    auto *g = static_cast<float *>(array(held, row_length * sizeof(float)));
    std::fill_n(values, length, 1.0f);
    std::fill_n(sums, length, 1.0f);
    std::fill_n(g, row_length, 0.001f);
    std::vector<uint64_t> order(rows);
    for (uint64_t i = 0; i < rows; i++) order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
    const UpdateRule update(params_of(DTRAIN_RULE_ADAGRAD, DTRAIN_F32, row_length));
    // Inlined always, or gcc drops the call as one without effect.
    auto prefetch = [&](uint64_t row) __attribute__((always_inline)) {
        for (uint64_t i = 0; i < row_length; i += 16) {
            __builtin_prefetch(values + row * row_length + i, 1);
            __builtin_prefetch(sums + row * row_length + i, 1);
        }
    };
    const double rate = rate_of(double(rows), [&] {
        for (uint64_t i = 0; i < rows; i++) {
            prefetch(order[std::min(i + 4, rows - 1)]);
            const uint64_t at = order[i] * row_length;
            update.apply(0, {values + at, {sums + at}}, g, row_length);
        }
    });
    std::printf("adagrad       f32 in rows of %llu, %llu of them %8.1f M rows/s\n",
                static_cast<unsigned long long>(row_length), static_cast<unsigned long long>(rows),
                rate / 1e6);
}

} // namespace

int main(int argc, char **argv) {
    for (uint32_t rule : builtin_rules()) {
        if (argc > 1 && std::strcmp(argv[1], rule_info(rule).name) != 0) continue;
        measure(rule, DTRAIN_F32);
        measure(rule, DTRAIN_F64);
    }
    if (argc > 1 && std::strcmp(argv[1], "adagrad") != 0) return 0;
    measure_rows(64);
    measure_rows(1 << 20);
}
