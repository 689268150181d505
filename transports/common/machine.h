// Identifies the machine on which this process runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "fd.h"

#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>

namespace dtrain::tp {

// An empty text if it cannot be read.
struct BootId {
    char text[64] = "";
    BootId() {
        if (const Fd fd{open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)}; fd)
            if (read(fd.get(), text, sizeof text - 1) < 0) *text = 0;
    }
};

// A fingerprint of the machine since its last boot, and of this process's namespace there ("net":
// processes that share a loopback; "pid": processes that share process numbers).
inline uint64_t machine_fingerprint(const char *ns) {
    const BootId boot;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/ns/%s", ns);
    struct stat space {};
    if (stat(path, &space)) space.st_ino = 0;
    uint64_t hash = 0xCBF29CE484222325u ^ space.st_ino; // FNV-1a
    for (const char *c = boot.text; *c; c++) hash = (hash ^ uint8_t(*c)) * 0x100000001B3u;
    return hash;
}

} // namespace dtrain::tp
