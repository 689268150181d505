// The table of update rules: what each one keeps and needs, and its kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/kernels/kernels.h"
#include "ps/table/table_params.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::ps {

// Squared norms over a row: of the values, and of g or what the rule moves along.
struct Norms {
    double values = 0, direction = 0;
};

struct RuleInfo {
    const char *name;
    enum : uint32_t {
        optimizer = 1,    // has a learning rate, clipping, ...; floating-point tables only
        counts_steps = 2, // needs the number of updates that an element has had
        counts_rows = 4,  // the same, but per row
        row_state = 8,    // slots hold one number per row
        own_decay = 16,   // the weight decay is not a part of g
        own_proximal = 32,
        floats = 64,    // floating-point tables only
        backs_up = 128, // needs what each worker pulled last
        own_steps = 256 // counts for itself, whatever the table's steps
    };
    uint32_t flags = 0;
    const char *slots[max_slots] = {}; // names of the state's arrays
    uint32_t accumulator = max_slots;  // which of them begins with that parameter; max_slots: none
    uint32_t combine = DTRAIN_SUM; // how the pushes of a clock become one; else, the rule itself
    Kernels KernelTable::*update = nullptr;
    // With norms: a pass before it that writes the direction to c (nullptr: the direction is g),
    // and the factor of the rate that the norms give. count: elements of the row; state: of the
    // row.
    Kernels KernelTable::*direction = nullptr;
    double (*ratio)(const Step &step, const Norms &norms, uint64_t count, double &state) = nullptr;
    double rate = 0.01, epsilon = 1e-8; // defaults
    uint32_t takes = 0;                 // DTRAIN_GIVEN_*: the numbers of its formula

    bool is(uint32_t flag) const { return (flags & flag) != 0; }
    bool counts() const { return is(counts_steps | counts_rows); }
    uint32_t slot_count() const {
        uint32_t n = 0;
        while (n < max_slots && slots[n] != nullptr) ++n;
        return n;
    }
};

bool rule_known(uint32_t rule);
const RuleInfo &rule_info(uint32_t rule); // of one that is known

// Norms are taken over rows: by the rule, or for clip_norm.
bool takes_norms(const TableParams &params);
// Pushes are whole rows of a dense table: of which norms are taken, which have segments, or which a
// function is given (so are its pulls).
bool by_whole_rows(const TableParams &params);
// A rule needs the number of an update, which may be the table's.
bool takes_steps(const TableParams &params);
bool may_count_by_table(const TableParams &params);
// Else updates are counted, by how many elements of the table.
bool counts_steps(const TableParams &params);
uint64_t counted_elements(const TableParams &params);
bool has_rate(const TableParams &params);
bool divides_by_rate(const TableParams &params);
// The rate may be this one: at creation, and pushed later.
bool valid_rate(const TableParams &params, double rate);

// "adam", "function clipped": as checkpoints have it.
std::string rule_title(const TableParams &params);

// Updates add up, so that each must be stored without a bias; or they replace values.
bool accumulates(const TableParams &params);
bool rounds_at_random(const TableParams &params);
// Where a dense table may be cut: between so many elements; 0: anywhere.
uint64_t whole_elements(const TableParams &params);

// State is kept as doubles for f64 tables, else as floats.
uint32_t slot_dtype(uint32_t dtype);
uint32_t slot_size(uint32_t dtype);

// One of the arrays that make up the rule's state, in the order of dtrain_table_describe_state().
struct StateArray {
    std::string name;
    uint32_t dtype = 0, size = 0; // bytes of a number
    uint64_t elements = 1;        // of the table that share `numbers`:
    uint64_t numbers = 1;
    bool by_row = false; // a row has one
    bool steps = false;  // not a slot but the counts of updates
    double initial = 0;

    uint64_t numbers_of(uint64_t count) const { return count / elements * numbers; }
    uint64_t bytes_of(uint64_t count) const { return numbers_of(count) * size; }
};
// False: the rule has no such array.
bool find_state(const TableParams &params, uint64_t index, StateArray &out);
std::vector<StateArray> state_arrays(const TableParams &params); // all
std::vector<StateArray> slots_of(const TableParams &params);     // all but the counts of updates

} // namespace dtrain::ps
