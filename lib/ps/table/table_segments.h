// Tables whose rows have several rules, each for some of the columns.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"
#include "dtrain.h"
#include "ps/table/table_params.h"

#include <string>

namespace dtrain::ps {

// The segment as a table of its own: as wide as it is, with its rule.
TableParams segment_params(const TableParams &table, const Segment &segment);
// Whether they cover a row of the table, each column once and in order, with rules that it may
// have.
bool valid_segments(const TableParams &table);
// The caller's segments with defaults; DTRAIN_ERR_INVALID with what is wrong.
Status resolve_segments(const dtrain_table_params_t &given, TableParams &params);
// "ftrl:1 adagrad:16"
std::string segments_title(const TableParams &params);

} // namespace dtrain::ps
