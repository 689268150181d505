// Logs which way calls took, why, and whether the prediction was right (option explain).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/log.h"
#include "collectives/cost/choose.h"
#include "common/shared_copy.h"
#include "engine/operation.h"

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace dtrain::collectives {

// Logs one line when a kind, size class (power of two) and way occur for the first time, and a
// table of all of them at the end. Any thread.
class Explainer {
  public:
    struct Rules { // what the communicator's choice depends on
        int32_t ranks = 1;
        uint64_t chunk_bytes = 0;
        NetworkModel model;
        std::optional<Algorithm> forced; // for all-reduce
        // Must outlive the explainer; nullptr: all ranks are equally near
        const Topology *topology = nullptr;
    };
    Explainer(Log &log, const Rules &rules) : log_(log), rules_(rules) {}
    ~Explainer(); // logs the table

    void ended(const engine::Operation &operation, int64_t elapsed_ns);
    // Logs how far apart the cores are, by what this rank wrote for the others in shared memory, if
    // there were calls. At the end, when none is in progress.
    void tell_distance(const tp::SharedCopy &writes);

  private:
    struct Row {
        const char *kind, *way;
        uint64_t bytes; // of the first call
        double predicted_ns;
        uint64_t calls;
        double total_ns;
        std::vector<float> last_ns; // of the most recent calls, a ring buffer
        double median_ns() const;
    };
    Row &row_of(const trace::Record &record, bool &is_new);
    void explain(const trace::Record &record, Row &row, int64_t elapsed_ns);

    static constexpr size_t kept = 255; // number of times kept for the median
    Log &log_;
    const Rules rules_;
    std::mutex mutex_;
    std::vector<Row> rows_;
};

} // namespace dtrain::collectives
