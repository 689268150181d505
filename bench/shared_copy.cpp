// What one core writes for another, by ordinary stores and past the caches (common/shared_copy.h).
// SPDX-License-Identifier: Apache-2.0
//
// Two threads on the first two CPUs. "write" and "read": each fills a ring of its own again, whose
// lines the other one has read, then both read the other's. "one way": a message and a flag to and
// fro, through 16 places in turn. Microseconds, medians; the distance of the CPUs before and after.
#include "common/shared_copy.h"
#include "line.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <thread>
#include <vector>

namespace {

using Copy = void (*)(void *, const void *, uint64_t);
constexpr uint64_t huge_page = 2 << 20;

double now_us() {
    return std::chrono::duration<double, std::micro>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void ordinary(void *to, const void *from, uint64_t bytes) { std::memcpy(to, from, bytes); }

struct Buffer {
    explicit Buffer(uint64_t bytes)
        : data(static_cast<char *>(
              std::aligned_alloc(huge_page, (bytes + huge_page - 1) / huge_page * huge_page))) {
        std::memset(data, 1, bytes);
    }
    ~Buffer() { std::free(data); }
    char *const data;
};

struct alignas(128) Flag {
    std::atomic<uint32_t> value{0};
};

// body(rank) on a CPU of its own.
template <class Body> void on_two_cpus(Body &&body) {
    std::array<std::thread, 2> threads;
    for (int rank = 0; rank < 2; rank++)
        threads[size_t(rank)] = std::thread([&body, rank] {
            cpu_set_t ours, one;
            CPU_ZERO(&one);
            sched_getaffinity(0, sizeof ours, &ours);
            int left = rank;
            for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET(cpu, &ours) && left-- == 0) CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
            body(rank);
        });
    for (std::thread &thread : threads) thread.join();
}

double median(std::vector<double> &times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

double distance_ns() {
    lines_t lines{};
    double ns = 0;
    on_two_cpus([&](int rank) {
        const double mine = line_ns(&lines, rank == 0);
        if (rank == 0) ns = mine;
    });
    return ns;
}

// Waits without a system call, as ranks do.
void meet(std::array<Flag, 2> &flags, int rank, uint32_t &round) {
    flags[size_t(rank)].value = ++round;
    while (flags[size_t(1 - rank)].value < round) {
    }
}

void write_and_read(uint64_t bytes, Copy copy) {
    const Buffer rings[2] = {Buffer(bytes), Buffer(bytes)};
    std::array<Flag, 2> flags;
    std::vector<double> writes, reads;
    on_two_cpus([&](int rank) {
        const Buffer own(bytes);
        uint32_t round = 0;
        for (int i = 0; i < 300; i++) {
            std::memset(own.data, i, bytes);
            meet(flags, rank, round);
            const double begin = now_us();
            copy(rings[rank].data, own.data, bytes);
            const double written = now_us();
            meet(flags, rank, round);
            const double met = now_us();
            std::memcpy(own.data, rings[1 - rank].data, bytes);
            if (rank == 0) {
                writes.push_back(written - begin);
                reads.push_back(now_us() - met);
            }
        }
    });
    std::printf("  %9.2f %9.2f", median(writes), median(reads));
}

void one_way(uint64_t bytes, Copy copy) {
    constexpr uint32_t places = 16, batch = 100, batches = 60;
    const Buffer rings[2] = {Buffer(bytes * places), Buffer(bytes * places)};
    std::array<Flag, 2> flags;
    std::vector<double> times;
    on_two_cpus([&](int rank) {
        const Buffer own(bytes), other(bytes);
        double begin = now_us();
        for (uint32_t i = 1; i <= batch * batches; i++) {
            const uint64_t at = i % places * bytes;
            const auto send = [&] {
                copy(rings[rank].data + at, own.data, bytes);
                flags[size_t(rank)].value.store(i, std::memory_order_release);
            };
            if (rank == 0) send();
            while (flags[size_t(1 - rank)].value.load(std::memory_order_acquire) < i) {
            }
            std::memcpy(other.data, rings[1 - rank].data + at, bytes);
            if (rank == 1) send();
            if (rank == 1 || i % batch != 0) continue;
            times.push_back((now_us() - begin) / (2 * batch));
            begin = now_us();
        }
    });
    std::printf("  %9.2f", median(times));
}

} // namespace

int main() {
    cpu_set_t ours;
    if (sched_getaffinity(0, sizeof ours, &ours) != 0 || CPU_COUNT(&ours) < 2)
        return std::puts("two CPUs are needed"), 1;
    const double before = distance_ns();
    std::printf("%8s  %29s  %29s\n", "", "ordinary stores", "past the caches");
    std::printf("%8s  %9s %9s %9s  %9s %9s %9s\n", "bytes", "write", "read", "one way", "write",
                "read", "one way");
    for (const uint64_t bytes : {64, 256, 1024, 4096, 16384, 65536, 262144, 1048576}) {
        std::printf("%8llu", static_cast<unsigned long long>(bytes));
        for (const Copy copy : {Copy{ordinary}, Copy{dtrain::tp::copy_stream}}) {
            write_and_read(bytes, copy);
            one_way(bytes, copy);
        }
        std::puts("");
    }
    const double after = distance_ns();
    std::printf("a line: %.0f ns (%s) before, %.0f ns (%s) after\n", before, line_state(before),
                after, line_state(after));
    return 0;
}
