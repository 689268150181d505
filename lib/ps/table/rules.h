// What a table's rule, or its segments' rules, need and keep.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/registry.h"
#include "ps/table/table_params.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::ps {

// Whether norms are computed over rows, by the rule or for clip_norm.
bool takes_norms(const TableParams &params);
// Whether pushes to a dense table are whole rows: if norms are computed over rows, rows have
// segments, or a function is called with rows (pulls are whole rows then, too).
bool by_whole_rows(const TableParams &params);
// takes_steps(): whether a rule needs the number of the update. may_count_by_table(): whether that
// number may be the table's.
bool takes_steps(const TableParams &params);
bool may_count_by_table(const TableParams &params);
// Whether updates are counted per element or row, and how many elements share one count.
bool counts_steps(const TableParams &params);
uint64_t counted_elements(const TableParams &params);
bool has_rate(const TableParams &params);
bool divides_by_rate(const TableParams &params);
// Whether the learning rate is valid, at creation or set later.
bool valid_rate(const TableParams &params, double rate);

// The rule's name in checkpoints: "adam", "function clipped".
std::string rule_title(const TableParams &params);

// accumulates(): whether updates add up rather than replace values, so that a bias in rounding
// would add up, too.
bool accumulates(const TableParams &params);
bool rounds_at_random(const TableParams &params);
// A dense table may be cut at multiples of this number of elements; 0: anywhere.
uint64_t whole_elements(const TableParams &params);

// The type and size of state numbers: f64 for f64 tables, else f32.
uint32_t slot_dtype(uint32_t dtype);
uint32_t slot_size(uint32_t dtype);

// One of the arrays that make up the rule's state, in the order of dtrain_table_describe_state().
struct StateArray {
    std::string name;
    uint32_t dtype = 0, size = 0; // size: bytes of a number
    uint64_t elements = 1;        // so many elements of the table share ...
    uint64_t numbers = 1;         // ... so many numbers of the array
    bool by_row = false;          // one number per row
    bool steps = false;           // the counts of updates, not a slot
    double initial = 0;

    uint64_t numbers_of(uint64_t count) const { return count / elements * numbers; }
    uint64_t bytes_of(uint64_t count) const { return numbers_of(count) * size; }
};
// False: the rule has no such array.
bool find_state(const TableParams &params, uint64_t index, StateArray &out);
std::vector<StateArray> state_arrays(const TableParams &params); // all arrays
std::vector<StateArray> slots_of(const TableParams &params);     // without the counts of updates

} // namespace dtrain::ps
