// Implements dtrain_table_set_consistency().
// SPDX-License-Identifier: Apache-2.0
#include "api/table.h"

#include <utility>

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;

namespace {

// Reads the caller's structs.
Status read(const dtrain_table &table, const dtrain_table_params_t *params,
            const dtrain_op_params_t *op, dtrain_table_params_t &given,
            dtrain_op_params_t &options) {
    if (Status s = dtrain::api::take(options, op); s != DTRAIN_OK) return s;
    if (std::exchange(options.cq, nullptr) != nullptr)
        return fail(DTRAIN_ERR_UNSUPPORTED,
                    "set_consistency blocks: it takes no completion queue (cq must be NULL)");
    if (params == nullptr) return fail(DTRAIN_ERR_INVALID, "params is NULL");
    dtrain::api::Operation operation;
    if (Status s = dtrain::api::Operation::read(table.context, &options, nullptr, {}, operation);
        s != DTRAIN_OK)
        return s;
    return dtrain::api::take(given, params);
}

} // namespace

dtrain_status_t dtrain_table_set_consistency(dtrain_comm_t *comm, dtrain_table_t *table,
                                             const dtrain_table_params_t *params,
                                             const dtrain_op_params_t *op) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    if (Status s = check_handle(table, "table"); s != DTRAIN_OK) return s;
    const bool own = comm->node == table->node && comm->communicator->is_world();
    if (!own && !has_all_survivors(*comm->communicator, *table))
        return fail(
            DTRAIN_ERR_INVALID,
            "table \"%s\" was made on another communicator, and this one does not contain all "
            "surviving workers (make one with dtrain_comm_shrink())",
            table->table->name.c_str());
    return dtrain::api::guard([&]() -> Status {
        dtrain_op_params_t options = {};
        dtrain_table_params_t given = {};
        const Status taken = read(*table, params, op, given, options);
        return set_consistency({.comm = *comm->communicator, .rest = !own}, *table, given, taken,
                               options.timeout_ns);
    });
}
