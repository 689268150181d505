// Every state that a crash at any moment of a log may leave on a disk, and what must hold in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "crash/disk_model.h"
#include "crash/subsets.h"

#include <functional>
#include <set>
#include <string>
#include <utility>

namespace crash {

struct Counts {
    uint64_t crashes = 0, choices = 0; // moments; sets of changes that are kept
    uint64_t states = 0, checked = 0;  // different disks; those that a sample consists of
    Counts &operator+=(const Counts &other) {
        crashes += other.crashes;
        choices += other.choices;
        states += other.states;
        checked += other.checked;
        return *this;
    }
};

// Returns what does not hold, or "". all_done: the last call of the log has returned.
using Check = std::function<std::string(const Tree &tree, bool all_done)>;

// A crash before the first call after the first `from` calls, after it, after the next, ...: the
// first complaint, with the moment, or "". A disk that was seen before is not checked again, except
// when all is done.
inline std::string check_states(const std::string &root, const Tree &before, const DiskLog &log,
                                size_t from, const Extent &extent, uint64_t seed,
                                const Check &check, Counts &counts) {
    std::mt19937_64 random(seed);
    std::set<std::pair<size_t, bool>> seen;
    DiskModel disk(root, before);
    std::string complaint;
    for (size_t done = 0; done <= log.size() && complaint.empty(); done++) {
        if (done > 0) disk.apply(log[done - 1]);
        if (done < from) continue;
        const bool all_done = done == log.size();
        counts.crashes++;
        for_each_subset(disk.pending(), extent, random, [&](const std::vector<bool> &kept) {
            if (!complaint.empty()) return;
            counts.choices++;
            const Tree state = disk.after_crash(kept);
            if (!seen.emplace(fingerprint(state), all_done).second) return;
            counts.states++;
            complaint = check(state, all_done);
            if (complaint.empty()) return;
            complaint += done == 0 ? ", at first" : ", after " + describe(log[done - 1]);
            complaint += ", call " + std::to_string(done) + " of " + std::to_string(log.size());
        });
    }
    return complaint;
}

} // namespace crash
