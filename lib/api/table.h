// A table's handle.
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
    dtrain::ps::ClientTable *table = nullptr;   // the node's client owns it
    std::vector<dtrain::ps::StateArray> states; // of its rule
    std::optional<uint64_t> restored; // from the checkpoint of this step, when it was made
};

namespace dtrain::api {

// A state array of the table's rule, or DTRAIN_ERR_NOT_FOUND.
Status find_state(const dtrain_table *table, uint32_t index, ps::StateArray &array);

// Takes over what operations on tables have of their own: a push's weight, a pull's min_version.
// DTRAIN_ERR_INVALID where they do not fit the kind or the table.
Status take_terms(const dtrain_table *table, const char *what, const dtrain_op_params_t *params,
                  ps::Transfer &transfer);

// What of a placement depends on the servers: weights, and what the caller's place() says. Local.
Status complete_placement(const dtrain_table_params_t &given, const char *name,
                          const ps::Node &node, ps::TableParams &params);
// Collective: where to put a table that lies on one server.
Status agree_on_home(dtrain_comm *comm, ps::Node &node, int64_t deadline_ns,
                     ps::TableParams &params);

} // namespace dtrain::api
