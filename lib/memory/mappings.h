// The memory mappings of this process (/proc/self/maps).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/fd.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace dtrain::memory {

struct Mapping {
    uintptr_t begin, end;
    char permissions[5];    // "rw-p"
    uint64_t device, inode; // both 0: anonymous memory

    bool is_private() const { return std::strcmp(permissions, "rw-p") == 0; }
    bool same_file(const Mapping &other) const {
        return inode != 0 && inode == other.inode && device == other.device;
    }
};

// Calls f(mapping) for each mapping that overlaps [begin, end), in order; false if they cannot be
// read.
template <class F> bool each_mapping(uintptr_t begin, uintptr_t end, F &&f) {
    const Stream file = read_stream("/proc/self/maps");
    if (file == nullptr) return false;
    char line[512];
    bool whole = true; // `line` is the beginning of a line
    while (std::fgets(line, sizeof line, file.get()) != nullptr) {
        Mapping m;
        unsigned major = 0, minor = 0;
        bool parsed =
            whole && std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %x:%x %" SCNu64, &m.begin,
                                 &m.end, m.permissions, &major, &minor, &m.inode) == 6;
        whole = std::strchr(line, '\n') != nullptr;
        if (!parsed || m.end <= begin || m.begin >= end) continue;
        m.device = uint64_t(major) << 32 | minor;
        f(m);
    }
    return true;
}

} // namespace dtrain::memory
