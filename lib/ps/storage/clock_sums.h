// The number format for sums of the pushes in a clock: f32 for f16 and bf16; and for AVG of
// integers a wider one, since the sum over all workers may not fit in the table's dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table/table_params.h"

#include <cstdint>
#include <vector>

namespace dtrain::ps {

class ClockSums {
  public:
    // of_function: a user's function adds up; it only knows the table's dtype.
    explicit ClockSums(const TableParams &params, bool of_function = false);
    static uint64_t element_bytes_of(const TableParams &params);

    uint64_t element_bytes() const { return format_.bytes(); }
    // Pushed values times their weight, in the format of the sums; valid until the next call.
    const char *of(const void *g, uint64_t count, double weight);
    void add(void *to, const void *from, uint64_t count) const; // both in the format of of()
    // Converts a sum in place to computed_dtype(), after dividing it by the divisor (not 0) if the
    // table's aggregate is AVG.
    void finish(void *sum, uint64_t count, double divisor) const;

  private:
    // An element's sum has `parts` numbers of a dtype. Two parts of 64 bits have the sums of the
    // upper and the lower halves of numbers, which are exact for 2^31 pushes.
    struct Format {
        uint32_t dtype = 0, parts = 1;
        uint64_t bytes() const;
        bool operator==(const Format &) const = default;
    };
    static Format format_of(const TableParams &params);

    TableParams params_;
    Format own_, format_; // of pushed elements; of their sums
    std::vector<char> taken_;
};

} // namespace dtrain::ps
