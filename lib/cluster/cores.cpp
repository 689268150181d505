// SPDX-License-Identifier: Apache-2.0
#include "cluster/cores.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <sched.h>

namespace dtrain::cluster {
namespace {

// "max 100000" or "150000 100000": microseconds of CPU per period. 0: no limit known.
uint32_t quota_cores() {
    std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen("/sys/fs/cgroup/cpu.max", "re"),
                                                &std::fclose);
    long long quota = 0, period = 0;
    if (file == nullptr || std::fscanf(file.get(), "%lld %lld", &quota, &period) != 2 ||
        quota <= 0 || period <= 0)
        return 0;
    return uint32_t(std::clamp((quota + period - 1) / period, 1LL, 1LL << 20));
}

} // namespace

uint32_t usable_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    uint32_t cores = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0) cores = uint32_t(std::max(1, CPU_COUNT(&set)));
    uint32_t quota = quota_cores();
    return quota != 0 ? std::min(cores, quota) : cores;
}

uint64_t usable_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
    uint64_t hash = 0xcbf29ce484222325; // FNV-1a
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set)) hash = (hash ^ cpu) * 0x100000001b3;
    return hash;
}

} // namespace dtrain::cluster
