// The results of a measurement of a machine, and the file that stores them (option tuning.file).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/cost/price.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain::collectives {

// The properties that a job must share with the job that measured.
struct Machine {
    std::string cpu;        // model name
    std::string transports; // used between the ranks, as in "shm+tcp"
    uint64_t cores = 0;     // usable cores of rank 0's machine
    uint64_t bandwidth = 0; // of the slowest transport according to itself, in bytes per second
    uint64_t ranks = 0, hosts = 0;
    bool operator==(const Machine &) const = default;
};
std::string cpu_name();
// Describes how two machines differ, as in "cpu \"A\" there, \"B\" here"; "" if they do not.
std::string difference(const Machine &there, const Machine &here);

struct Tuning {
    Machine machine;
    NetworkModel model;
    uint64_t exchange_bytes = 0; // largest all-reduce by window exchange
    uint64_t chunk_bytes = 0;
    uint64_t eager_bytes = 0; // as in option eager.bytes
};

inline constexpr size_t max_tuning_bytes = 4096;
std::string to_text(const Tuning &tuning);
// Accepts any text. CORRUPT: incomplete, changed, or out of range; VERSION: another format. `out`
// stays untouched on failure.
Status parse_tuning(std::string_view text, Tuning &out);
// The same with a file: NOT_FOUND or IO if it cannot be read or written. A file is written
// completely or not at all.
Status read_tuning(const char *path, Tuning &out);
Status write_tuning(const char *path, const Tuning &tuning);

} // namespace dtrain::collectives
