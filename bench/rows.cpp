// The store of sparse tables: look-ups, sums and growth, of batches of random keys.
// SPDX-License-Identifier: Apache-2.0
//
// Usage: bench_rows [rows]. Million keys per second of one core: the median of several batches.
#include "ps/storage/row_store.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using dtrain::ps::RowStore;

constexpr size_t batch = 10000;
constexpr int samples = 200;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

template <class F> double rate(uint64_t rows, F &&f) {
    std::vector<uint64_t> keys(batch);
    std::vector<double> rates;
    uint64_t drawn = 0;
    for (int s = 0; s < samples; s++) {
        for (uint64_t &key : keys) key = dtrain::mix(dtrain::mix(drawn++) % rows);
        const double begin = now();
        f(keys.data());
        rates.push_back(1e-6 * double(batch) / (now() - begin));
    }
    std::sort(rates.begin(), rates.end());
    return rates[rates.size() / 2];
}

template <size_t dim> void measure(uint64_t rows) {
    RowStore store(dim * sizeof(float));
    std::vector<float> values(batch * dim, 1.0f);
    auto make = [](uint64_t, char *row) { std::memset(row, 0, dim * sizeof(float)); };
    const double begin = now();
    for (uint64_t i = 0; i < rows; i += batch) {
        uint64_t keys[batch];
        const size_t n = std::min<uint64_t>(batch, rows - i);
        for (size_t k = 0; k < n; k++) keys[k] = dtrain::mix(i + k);
        if (store.obtain(keys, n, make, [](size_t, char *) {}) != n) std::exit(EXIT_FAILURE);
    }
    const double grown = 1e-6 * double(rows) / (now() - begin);
    const double gather = rate(rows, [&](const uint64_t *keys) {
        store.find(keys, batch, [&](size_t i, const char *row) {
            if (row != nullptr) std::memcpy(&values[i * dim], row, dim * sizeof(float));
        });
    });
    const double add = rate(rows, [&](const uint64_t *keys) {
        store.find(keys, batch, [&](size_t i, char *row) {
            auto *to = reinterpret_cast<float *>(row);
            for (size_t d = 0; row != nullptr && d < dim; d++) to[d] += values[i * dim + d];
        });
    });
    const double raw = double(rows) * (8 + dim * sizeof(float));
    std::printf("%9llu rows of %3zu floats: make %5.1f, gather %5.1f, add %5.1f M keys/s; memory "
                "%.3f of the raw bytes\n",
                static_cast<unsigned long long>(rows), dim, grown, gather, add,
                double(store.memory()) / raw);
}

} // namespace

int main(int argc, char **argv) {
    const uint64_t rows = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000000;
    measure<16>(rows);
    measure<64>(rows);
    return EXIT_SUCCESS;
}
