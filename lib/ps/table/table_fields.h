// The numeric parameters of a table: their order on the wire and their valid values.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table/table_params.h"

#include <cstdint>

namespace dtrain::ps {

// Exactly one of the three members is set.
struct Field {
    const char *name;
    uint64_t TableParams::*wide = nullptr;
    uint32_t TableParams::*number = nullptr;
    double TableParams::*real = nullptr;
    double dtrain_table_params_t::*given = nullptr; // for reals
    enum { any, not_negative, fraction } values = any;
    const char *hint = "";
    uint32_t bit = 0; // DTRAIN_GIVEN_*, if the default is not 0
};

extern const Field fields_of_table[field_count]; // in the order on the wire

// The parameters that segments have, too; all are reals.
struct SegmentField {
    double Segment::*own;
    double TableParams::*table;
    double dtrain_segment_t::*given;
    const char *name;
    uint32_t bit; // as above
};

inline constexpr uint32_t segment_field_count = 14;
extern const SegmentField fields_of_segment[segment_field_count];

} // namespace dtrain::ps
