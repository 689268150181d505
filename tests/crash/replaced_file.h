// A file that is replaced as a whole, and crashes while a process does so.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "crash/states.h"
#include "crash/traced.h"
#include "temporary_folder.h"

#include <functional>
#include <string>

namespace crash {

class ReplacedFile {
  public:
    // What a reader takes from the file in a folder.
    using Read = std::function<std::string(const std::string &folder)>;

    explicit ReplacedFile(Read read) : read_(std::move(read)) {}

    const std::string &folder() const { return folder_.name; }
    const DiskLog &log() const { return log_; }
    // A process that writes the file, and is done when it returns.
    void replace(const std::function<void()> &write) {
        before_ = read_tree(folder());
        readings_[0] = read_(folder());
        log_ = log_of(folder(), [&] { return write(), 0; });
        readings_[1] = read_(folder());
        REQUIRE(readings_[0] != readings_[1]);
    }
    // After each crash the file reads as before or as now; when the process was done, as now. The
    // first complaint, or "". log: the process's own, or that of a planted fault.
    std::string crash_at_each(const DiskLog &log, Counts &counts) const {
        return check_states(
            folder(), before_, log, 0, {12, 500}, 1,
            [&](const Tree &tree, bool all_done) -> std::string {
                write_tree(tree, scratch_.name);
                counts.checked++;
                const std::string reading = read_(scratch_.name);
                if (reading == readings_[1] || (!all_done && reading == readings_[0])) return "";
                return "it reads as \"" + reading + "\"";
            },
            counts);
    }

  private:
    const Read read_;
    const TemporaryFolder folder_{"/dev/shm"}, scratch_{"/dev/shm"};
    Tree before_;
    DiskLog log_;
    std::string readings_[2];
};

// The log of a process that forgets all syncs.
inline DiskLog without_syncs(DiskLog log) {
    std::erase_if(log, syncs);
    return log;
}

} // namespace crash
