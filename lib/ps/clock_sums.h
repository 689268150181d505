// What the pushes of a clock are added up in: the table's dtype, or for AVG one in which the sums
// of all workers have room, although their mean is again of the table's. SPDX-License-Identifier:
// Apache-2.0
#pragma once
#include "ps/table_params.h"

#include <cstdint>
#include <vector>

namespace dtrain::ps {

class ClockSums {
  public:
    // of_function: who adds up is a function, which knows the table's dtype only.
    explicit ClockSums(const TableParams &params, bool of_function = false);
    // f32 for f16, 64 bits for smaller integers; else the table's own.
    static uint32_t dtype_of(const TableParams &params);

    uint32_t dtype() const { return added_.dtype; }
    uint64_t element_bytes() const { return size_; }
    // Pushed values, which count as much as the weight says, as they are added; until the next
    // call.
    const char *of(const void *g, uint64_t count, double weight);
    void add(void *to, const void *from, uint64_t count) const; // both as of() gives them
    // A sum divided by the divisor, not 0, where the table's aggregate is AVG: in place, as
    // elements of the table.
    void finish(void *sum, uint64_t count, double divisor) const;

  private:
    TableParams added_; // the table's, with the dtype of sums
    uint32_t dtype_;
    uint64_t size_;
    std::vector<char> taken_;
};

} // namespace dtrain::ps
