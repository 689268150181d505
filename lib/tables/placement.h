// Completes what a table's placement needs to know of the servers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain.h"
#include "ps/node/node.h"
#include "ps/table/table_params.h"

namespace dtrain::tables {

// Sets weights and owners in params.placement; calls the caller's place(). Local.
Status complete_placement(const dtrain_table_params_t &given, const char *name,
                          const ps::Node &node, ps::TableParams &params);

} // namespace dtrain::tables
