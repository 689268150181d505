// Reads the affinity mask and the CPU quotas of the control groups.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/host/cores.h"

#include "base/fd.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sched.h>
#include <string>
#include <string_view>

namespace dtrain::cluster {
namespace {

constexpr uint32_t unlimited = UINT32_MAX;

// Parses "max 100000" or "150000 100000": microseconds of CPU time per period. In thousandths.
uint32_t quota_in(const std::string &folder) {
    const Stream file = read_stream((folder + "/cpu.max").c_str());
    long long quota = 0, period = 0;
    if (file == nullptr || std::fscanf(file.get(), "%lld %lld", &quota, &period) != 2 ||
        quota <= 0 || period <= 0)
        return unlimited;
    return uint32_t(std::clamp(1000 * quota / period, 1LL, 1LL << 30));
}

// The smallest quota of this process's control group and those around it. The first line of the
// file is "0::/a/b".
uint32_t quota() {
    char line[4096] = "";
    const Stream file = read_stream("/proc/self/cgroup");
    std::string path;
    if (file != nullptr && std::fgets(line, sizeof line, file.get()) != nullptr &&
        std::string_view(line).starts_with("0::/"))
        path.assign(line + 3, std::strcspn(line + 3, "\n"));
    uint32_t least = quota_in("/sys/fs/cgroup");
    for (; path.size() > 1; path.erase(path.rfind('/')))
        least = std::min(least, quota_in("/sys/fs/cgroup" + path));
    return least;
}

} // namespace

uint32_t usable_millicores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    uint32_t cores = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0) cores = uint32_t(std::max(1, CPU_COUNT(&set)));
    return std::min(1000 * cores, quota());
}

uint32_t usable_cores() { return (usable_millicores() + 999) / 1000; }

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
