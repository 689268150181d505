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

    // Updates a row by g. slots: the row's numbers in each array of slots_of().
    void apply(uint64_t number, char *row, char *const *slots, const char *g) const;
    // Calls f(rule, first, count, slots) for each segment: its columns, and how many arrays it has.
    template <class F> void for_each(F &&f) const {
        for (const Part &part : parts_) f(part.rule, part.first, part.count, part.slots);
    }
    // Sets each rate to the segment's learning_rate times the factor.
    void set_rate(double factor);

  private:
    struct Part {
        UpdateRule rule;
        double rate;
        uint64_t at, first, count; // its offset in a row in bytes; its columns
        uint32_t slots;
    };
    std::vector<Part> parts_;
};

// Combines two pushes of the same elements, `from` into `to`: by the rule's `combine`, which is the
// sum for most rules. elements: whole rows if the table has segments.
void combine(const TableParams &table, uint32_t dtype, void *to, const void *from,
             uint64_t elements);
// The same for a row that occurs twice in one push. With ASSIGN the last one counts.
void combine_repeated(const TableParams &table, uint32_t dtype, void *row, const void *again);

} // namespace dtrain::ps
