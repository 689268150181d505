// What the pushes of a clock are added up in: f32 for f16 and bf16, and for AVG of integers what
// the sums of all workers have room in, although their mean is again of the table's dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table/table_params.h"

#include <cstdint>
#include <vector>

namespace dtrain::ps {

class ClockSums {
  public:
    // of_function: who adds up is a function, which knows the table's dtype only.
    explicit ClockSums(const TableParams &params, bool of_function = false);
    static uint64_t element_bytes_of(const TableParams &params);

    uint64_t element_bytes() const { return format_.bytes(); }
    // Pushed values, which count as much as the weight says, as they are added; until the next
    // call.
    const char *of(const void *g, uint64_t count, double weight);
    void add(void *to, const void *from, uint64_t count) const; // both as of() gives them
    // A sum divided by the divisor, not 0, where the table's aggregate is AVG: in place, as
    // elements that the table's rule computes in.
    void finish(void *sum, uint64_t count, double divisor) const;

  private:
    // Of an element: so many numbers of a dtype. Two of 64 bits are a number's upper half and its
    // lower one, whose sums are exact for 2^31 pushes.
    struct Format {
        uint32_t dtype = 0, parts = 1;
        uint64_t bytes() const;
        bool operator==(const Format &) const = default;
    };
    static Format format_of(const TableParams &params);

    TableParams params_;
    Format own_, format_; // the table's elements; their sums
    std::vector<char> taken_;
};

} // namespace dtrain::ps
