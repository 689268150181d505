// The rules of a table with segments, ready to be applied to its rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/optimizer/update_rule.h"
#include "ps/table/rules.h"
#include "ps/table/table_segments.h"

#include <cstdint>
#include <vector>

namespace dtrain::ps {

class SegmentRules {
  public:
    explicit SegmentRules(const TableParams &table);

    // One update of a row by g. slots: where the row's numbers of each array of slots_of() are.
    void apply(uint64_t number, char *row, char *const *slots, const char *g) const;
    // The rates are those of the segments, times this.
    void set_rate(double factor);

  private:
    struct Part {
        UpdateRule rule;
        double rate;
        uint64_t at, count; // bytes in a row before it; its columns
        uint32_t slots;
    };
    std::vector<Part> parts_;
};

// Combines what was pushed to the same rows, `from`, with `to`: as the rules have it, else the sum.
// elements: whole rows where the table has segments.
void combine(const TableParams &table, uint32_t dtype, void *to, const void *from,
             uint64_t elements);
// The same for rows that one push has twice, where the last one counts for ASSIGN.
void combine_repeated(const TableParams &table, uint32_t dtype, void *row, const void *again);

} // namespace dtrain::ps
