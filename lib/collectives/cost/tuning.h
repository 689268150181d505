// What was measured on a machine, and the file that keeps it (option tuning.file).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/cost/price.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain::collectives {

// What a job must have in common with the one that measured.
struct Machine {
    std::string cpu;        // its model name
    std::string transports; // between the ranks, "shm+tcp"
    uint64_t cores = 0;     // usable ones of rank 0
    uint64_t bandwidth = 0; // of the slowest transport as it says, bytes per second
    uint64_t ranks = 0, hosts = 0;
    bool operator==(const Machine &) const = default;
};
std::string cpu_name();
// "cpu \"A\" there, \"B\" here"; "" when nothing differs.
std::string difference(const Machine &there, const Machine &here);

struct Tuning {
    Machine machine;
    NetworkModel model;
    uint64_t exchange_bytes = 0; // most for an all-reduce by window exchange
    uint64_t chunk_bytes = 0;
    uint64_t eager_bytes = 0; // as of option eager.bytes
};

inline constexpr size_t max_tuning_bytes = 4096;
std::string to_text(const Tuning &tuning);
// Any text may be given. NOT_FOUND or IO: it cannot be read. CORRUPT: incomplete, changed, or out
// of range; VERSION: of another format. `out` is untouched on failure.
Status parse_tuning(std::string_view text, Tuning &out);
// The same with a file; IO when it cannot be read or written. A file appears as a whole or not.
Status read_tuning(const char *path, Tuning &out);
Status write_tuning(const char *path, const Tuning &tuning);

} // namespace dtrain::collectives
