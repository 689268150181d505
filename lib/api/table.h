// The struct behind a table's handle, and what the files of dtrain_table_* share.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "api/operation.h"
#include "dtrain.h"
#include "ps/client/client_table.h"
#include "ps/node/node.h"
#include "ps/table/rules.h"

#include <optional>
#include <vector>

struct dtrain_table : dtrain::api::Child {
    using Child::Child;
    std::shared_ptr<dtrain::ps::Node> node;
    dtrain::ps::ClientTable *table = nullptr;   // owned by the node's client
    std::vector<dtrain::ps::StateArray> states; // state arrays of its rule
    std::optional<uint64_t> restored;           // step of the checkpoint restored at creation
};

namespace dtrain::api {

// Finds a state array of the table's rule, or returns DTRAIN_ERR_NOT_FOUND.
Status find_state(const dtrain_table *table, uint32_t index, ps::StateArray &array);

// Copies the parameters that only table operations have: a push's weight and a pull's min_version.
// DTRAIN_ERR_INVALID if they do not fit the kind of operation or the table.
Status take_terms(const dtrain_table *table, const char *what, const dtrain_op_params_t *params,
                  ps::Transfer &transfer);

// Completes what a placement needs from the servers: weights, and the answers of the caller's
// place(). Local.
Status complete_placement(const dtrain_table_params_t &given, const char *name,
                          const ps::Node &node, ps::TableParams &params);
// Collective: the ranks agree on the server of a table that lies on one server.
Status agree_on_home(dtrain_comm *comm, ps::Node &node, int64_t deadline_ns,
                     ps::TableParams &params);

} // namespace dtrain::api
