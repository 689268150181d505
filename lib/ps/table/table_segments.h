// Tables whose rows have segments: groups of columns, each with an update rule of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"
#include "dtrain.h"
#include "ps/table/table_params.h"

#include <string>

namespace dtrain::ps {

// The parameters of a table that consists of this segment only, with the segment's rule.
TableParams segment_params(const TableParams &table, const Segment &segment);
// Whether the segments cover a row of the table, each column once and in order, and their rules are
// allowed.
bool valid_segments(const TableParams &table);
// Takes the caller's segments and fills in defaults. DTRAIN_ERR_INVALID: the text says what is
// wrong.
Status resolve_segments(const dtrain_table_params_t &given, TableParams &params);
// Rules and widths as text: "ftrl:1 adagrad:16".
std::string segments_title(const TableParams &params);

} // namespace dtrain::ps
