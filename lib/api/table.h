// The struct behind a table's handle, and what the files of dtrain_table_* share.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "api/operation.h"
#include "dtrain.h"
#include "ps/table/rules.h"
#include "tables/shared_table.h"

#include <vector>

struct dtrain_table : dtrain::api::Child, dtrain::tables::SharedTable {
    using Child::Child;
    std::vector<dtrain::ps::StateArray> states; // state arrays of its rule
};

namespace dtrain::api {

// Finds a state array of the table's rule, or returns DTRAIN_ERR_NOT_FOUND.
Status find_state(const dtrain_table *table, uint32_t index, ps::StateArray &array);

// Copies the parameters that only table operations have: a push's weight and a pull's min_version.
// DTRAIN_ERR_INVALID if they do not fit the kind of operation or the table.
Status take_terms(const dtrain_table *table, const char *what, const dtrain_op_params_t *params,
                  ps::Transfer &transfer);

} // namespace dtrain::api
