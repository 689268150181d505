// The table of update rules: the state and inputs of each rule, and its kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/kernels/kernels.h"
#include "ps/table/table_params.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::ps {

// Squared norms over a row: of the values, and of the direction of the update (g, or what the rule
// makes of it).
struct Norms {
    double values = 0, direction = 0;
};

struct RuleInfo {
    const char *name;
    enum : uint32_t {
        optimizer = 1,     // has a learning rate, clipping, ...; floating-point tables only
        counts_steps = 2,  // needs the number of updates of each element
        counts_rows = 4,   // needs the number of updates of each row
        row_state = 8,     // slots hold one number per row
        own_decay = 16,    // the rule applies the weight decay; it is not added to g
        own_proximal = 32, // the rule applies l1 and l2 itself
        floats = 64,       // floating-point tables only
        backs_up = 128,    // needs the values that each worker pulled last
        own_steps = 256    // counts updates itself, regardless of the table's `steps`
    };
    uint32_t flags = 0;
    const char *slots[max_slots] = {}; // names of the state's arrays
    uint32_t accumulator = max_slots;  // the slot that starts at `accumulator`; max_slots: none
    uint32_t combine = DTRAIN_SUM;     // combines a clock's pushes; without `update` it is the rule
    Kernels KernelTable::*update = nullptr;
    // For rules with norms: a pass before the update that writes the direction to c (nullptr: the
    // direction is g), and the factor of the rate, computed from the norms. count: elements of the
    // row; state: the row's state.
    Kernels KernelTable::*direction = nullptr;
    double (*ratio)(const Step &step, const Norms &norms, uint64_t count, double &state) = nullptr;
    double rate = 0.01, epsilon = 1e-8; // defaults
    uint32_t takes = 0;                 // DTRAIN_GIVEN_*: the numbers in the rule's formula

    bool is(uint32_t flag) const { return (flags & flag) != 0; }
    bool counts() const { return is(counts_steps | counts_rows); }
    uint32_t slot_count() const {
        uint32_t n = 0;
        while (n < max_slots && slots[n] != nullptr) ++n;
        return n;
    }
};

bool rule_known(uint32_t rule);
const RuleInfo &rule_info(uint32_t rule); // the rule must be known

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
