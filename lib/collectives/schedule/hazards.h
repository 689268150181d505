// Derives the dependencies between steps from the memory that they read and write.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <vector>

namespace dtrain::collectives {

// The accesses to one memory by the steps so far: an interval map from bytes to their last writer
// and their readers since. Steps are reported in the order of the schedule.
class Hazards {
  public:
    // Step `step` reads (writes) [begin, end). Appends the earlier steps for which it must wait.
    void read(uint64_t begin, uint64_t end, uint32_t step, std::vector<uint32_t> &deps);
    void write(uint64_t begin, uint64_t end, uint32_t step, std::vector<uint32_t> &deps);

  private:
    static constexpr uint32_t nobody = UINT32_MAX;
    struct Segment {
        uint64_t end;
        uint32_t writer;
        std::vector<uint32_t> readers;
    };
    using Segments = std::map<uint64_t, Segment>; // by first byte; they do not overlap

    Segments::iterator split(uint64_t at); // the first segment that begins at or after `at`

    Segments segments_;
};

} // namespace dtrain::collectives
