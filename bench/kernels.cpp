// Throughput of the kernels of lib/device: one line per kernel, dtype and buffer size.
// SPDX-License-Identifier: Apache-2.0
//
// Usage: bench_kernels [name of a kernel]. GB/s are 1e9 bytes of ONE buffer per second: the median
// of several samples, with the least and the greatest. Buffers are touched and warm.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <vector>

#include "device/kernels.h"
#include "dtrain.h"

namespace {

using namespace dtrain::device;

constexpr uint64_t sizes[] = {4 << 10, 64 << 10, 4 << 20, 256 << 20};
constexpr uint32_t max_sources = 16;
constexpr uint64_t pool_bytes = (1ull << 30) + (1 << 20);
// Buffers that lie a power of two apart share banks of the memory: 256 MiB take up to 4 times
// longer.
constexpr uint64_t stagger = 5 * 4096;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

template <class Kernel> void measure(const char *name, uint32_t dtype, uint64_t bytes, Kernel run) {
    constexpr int samples = 9;
    constexpr double sample_seconds = 0.01;
    std::vector<double> rates;
    for (int i = 0; i < samples; i++) {
        uint64_t runs = 0;
        const double begin = now();
        double end = begin;
        for (; end - begin < sample_seconds; end = now(), runs++) run();
        rates.push_back(static_cast<double>(bytes * runs) / (end - begin) / 1e9);
    }
    std::sort(rates.begin(), rates.end());
    std::printf("%-14s %-5s %8llu KiB %8.1f GB/s [%.1f-%.1f]\n", name, dtype_name(dtype),
                static_cast<unsigned long long>(bytes >> 10), rates[samples / 2], rates.front(),
                rates.back());
}

void measure_size(const char *only, uint8_t *pool, uint64_t bytes) {
    auto wanted = [&](const char *name) { return only == nullptr || std::strcmp(only, name) == 0; };
    const uint64_t stride = bytes + stagger;
    uint8_t *a = pool, *b = a + stride, *c = b + stride;
    const void *sources[max_sources];
    for (uint32_t k = 0; k < max_sources; k++) sources[k] = pool + k * stride;
    for (uint32_t dtype = DTRAIN_F32; dtype <= DTRAIN_U64; dtype++) {
        const uint64_t count = bytes / dtype_size(dtype);
        if (wanted("sum"))
            measure("sum", dtype, bytes, [&] { reduce(a, b, count, dtype, DTRAIN_SUM); });
        if (wanted("prod"))
            measure("prod", dtype, bytes, [&] { reduce(a, b, count, dtype, DTRAIN_PROD); });
        if (wanted("max"))
            measure("max", dtype, bytes, [&] { reduce(a, b, count, dtype, DTRAIN_MAX); });
        if (wanted("pair"))
            measure("pair", dtype, bytes, [&] { reduce_pair(c, a, b, count, dtype, DTRAIN_SUM); });
        if (wanted("scale")) measure("scale", dtype, bytes, [&] { scale(a, count, dtype, 1); });
        if (wanted("mean") && 4 * stride <= pool_bytes)
            measure("mean of 4", dtype, bytes,
                    [&] { reduce_many(a, sources, 4, count, dtype, DTRAIN_AVG); });
        for (uint32_t n : {4u, max_sources})
            if (wanted("many") && n * stride <= pool_bytes)
                measure(n == 4 ? "many of 4" : "many of 16", dtype, bytes,
                        [&] { reduce_many(a, sources, n, count, dtype, DTRAIN_SUM); });
    }
    if (wanted("copy")) measure("copy", DTRAIN_U8, bytes, [&] { copy(a, b, bytes); });
    if (wanted("copy_stream"))
        measure("copy_stream", DTRAIN_U8, bytes, [&] { copy_stream(a, b, bytes); });
}

} // namespace

int main(int argc, char **argv) {
    void *pool =
        mmap(nullptr, pool_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pool == MAP_FAILED) return std::perror("mmap"), EXIT_FAILURE;
    madvise(pool, pool_bytes, MADV_HUGEPAGE);
    std::memset(pool, 0, pool_bytes);
    std::printf("target %s\n", kernel_target());
    for (uint64_t bytes : sizes)
        measure_size(argc > 1 ? argv[1] : nullptr, static_cast<uint8_t *>(pool), bytes);
}
