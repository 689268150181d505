// Sums of 2 to 4 buffers outside the caches, next to what the memory allows: a loop that reads and
// writes the same bytes and adds integers, and memcpy.
// SPDX-License-Identifier: Apache-2.0
//
// Usage: bench_sums [MiB of a buffer, default 128 [rounds, default 21]]. GB/s are 1e9 bytes read
// and written per second. In each round every contender runs once, so that a change of the machine
// meets all of them; "of the bound" is the median of the rounds' ratios.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "device/kernels.h"
#include "dtrain.h"

namespace {

using namespace dtrain::device;

constexpr uint32_t most_sources = 4;
constexpr uint64_t stagger = 5 * 4096; // buffers a power of two apart share banks of the memory

struct Buffers {
    uint8_t *dst;
    const void *sources[most_sources];
    uint64_t bytes;
};

// Ordinary loads and stores, 256 bytes of a source at a time, like the kernels.
template <uint32_t n> void bound(const Buffers &b) {
    using Line = uint64_t __attribute__((vector_size(256), may_alias, aligned(1)));
    auto *to = reinterpret_cast<Line *>(b.dst);
    for (uint64_t i = 0; i < b.bytes / sizeof(Line); i++) {
        Line sum = static_cast<const Line *>(b.sources[0])[i];
        for (uint32_t k = 1; k < n; k++) sum += static_cast<const Line *>(b.sources[k])[i];
        to[i] = sum;
    }
}

struct Contender {
    std::string name;
    uint32_t sources; // compared with the bound of as many
    std::function<void()> run;
    std::vector<double> seconds;
};

double time_of(const std::function<void()> &run) {
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    run();
    return std::chrono::duration<double>(clock::now() - begin).count();
}

double median(std::vector<double> x) {
    std::nth_element(x.begin(), x.begin() + long(x.size() / 2), x.end());
    return x[x.size() / 2];
}

// The first contender is the bound.
void compare(std::vector<Contender> contenders, int rounds, uint64_t bytes) {
    for (int round = -1; round < rounds; round++) // the first one warms up
        for (Contender &contender : contenders) {
            const double seconds = time_of(contender.run);
            if (round >= 0) contender.seconds.push_back(seconds);
        }
    for (const Contender &contender : contenders) {
        std::vector<double> ratios;
        for (size_t i = 0; i < contender.seconds.size(); i++)
            ratios.push_back(contenders[0].seconds[i] / contender.seconds[i]);
        const double moved = double(bytes * (contender.sources + 1));
        std::printf("%-8s of %u  %6.1f GB/s  %5.2f of the bound\n", contender.name.c_str(),
                    contender.sources, moved / median(contender.seconds) / 1e9, median(ratios));
    }
}

} // namespace

int main(int argc, char **argv) {
    const uint64_t mib = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 128;
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 21;
    const uint64_t bytes = mib << 20, stride = bytes + stagger;
    if (mib == 0 || mib > 4096 || rounds < 1) {
        std::fprintf(stderr, "usage: bench_sums [MiB of a buffer, 1 to 4096 [rounds]]\n");
        return EXIT_FAILURE;
    }
    const uint64_t pool_bytes = (most_sources + 1) * stride;
    void *pool =
        mmap(nullptr, pool_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pool == MAP_FAILED) return std::perror("mmap"), EXIT_FAILURE;
    madvise(pool, pool_bytes, MADV_HUGEPAGE);
    std::memset(pool, 0, pool_bytes);
    Buffers b = {static_cast<uint8_t *>(pool), {}, bytes};
    for (uint32_t k = 0; k < most_sources; k++) b.sources[k] = b.dst + (k + 1) * stride;
    std::printf("target %s, buffers of %llu MiB\n", kernel_target(),
                static_cast<unsigned long long>(mib));
    void (*const bounds[])(const Buffers &) = {bound<1>, bound<2>, bound<3>, bound<4>};
    for (uint32_t n = 1; n <= most_sources; n++) {
        std::vector<Contender> contenders = {{"bound", n, [=] { bounds[n - 1](b); }, {}}};
        if (n == 1)
            contenders.push_back(
                {"memcpy", 1, [=] { std::memcpy(b.dst, b.sources[0], bytes); }, {}});
        for (uint32_t dtype : {DTRAIN_F32, DTRAIN_F16, DTRAIN_BF16})
            if (n > 1)
                contenders.push_back({dtype_name(dtype),
                                      n,
                                      [=] {
                                          reduce_many(b.dst, b.sources, n,
                                                      bytes / dtype_size(dtype), dtype, DTRAIN_SUM);
                                      },
                                      {}});
        compare(contenders, rounds, bytes);
    }
    return EXIT_SUCCESS;
}
