// Implements dtrain_checkpoint_* and dtrain_table_restored().
// SPDX-License-Identifier: Apache-2.0
#include "api/table.h"

#include <vector>

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::api::guard_new;
using dtrain::ps::ClientTable;

namespace {

// Collects the client tables behind the handles. All must belong to one job and have different
// names.
Status take_tables(dtrain_table *const *tables, uint32_t count, std::vector<ClientTable *> &out) {
    if (tables == nullptr || count == 0)
        return fail(
            DTRAIN_ERR_INVALID,
            "checkpoint: tables is NULL or count is 0: a checkpoint needs at least one table");
    for (uint32_t i = 0; i < count; i++) {
        if (Status s = check_handle(tables[i], "table"); s != DTRAIN_OK) return s;
        if (tables[i]->node != tables[0]->node)
            return fail(DTRAIN_ERR_INVALID,
                        "checkpoint: table \"%s\" is not of the same job as table \"%s\"",
                        tables[i]->table->name.c_str(), tables[0]->table->name.c_str());
        for (const ClientTable *other : out)
            if (other->name == tables[i]->table->name)
                return fail(DTRAIN_ERR_INVALID, "checkpoint: two tables have the name \"%s\"",
                            other->name.c_str());
        out.push_back(tables[i]->table);
    }
    return DTRAIN_OK;
}

} // namespace

dtrain_status_t dtrain_checkpoint_save(dtrain_table_t *const *tables, uint32_t count, uint64_t step,
                                       const dtrain_checkpoint_params_t *params, int32_t *saved_p) {
    return guard_new([&]() -> Status {
        dtrain_checkpoint_params_t given;
        if (Status s = dtrain::api::take(given, params); s != DTRAIN_OK) return s;
        std::vector<ClientTable *> own;
        if (Status s = take_tables(tables, count, own); s != DTRAIN_OK) return s;
        if (step == DTRAIN_CHECKPOINT_NEWEST || given.every_ns < 0)
            return fail(DTRAIN_ERR_INVALID, "checkpoint_save: %s",
                        given.every_ns < 0
                            ? "every_ns is negative"
                            : "step is DTRAIN_CHECKPOINT_NEWEST: a save needs a number");
        bool saved = false;
        Status s = tables[0]->node->checkpointer().save(
            own, step, {.steps = given.every_steps, .ns = given.every_ns}, given.timeout_ns, saved);
        if (s == DTRAIN_OK && saved_p != nullptr) *saved_p = saved ? 1 : 0;
        return s;
    });
}

dtrain_status_t dtrain_checkpoint_restore(dtrain_table_t *const *tables, uint32_t count,
                                          uint64_t step, const dtrain_checkpoint_params_t *params,
                                          uint64_t *step_p) {
    return guard_new([&]() -> Status {
        dtrain_checkpoint_params_t given;
        if (Status s = dtrain::api::take(given, params); s != DTRAIN_OK) return s;
        std::vector<ClientTable *> own;
        if (Status s = take_tables(tables, count, own); s != DTRAIN_OK) return s;
        uint64_t restored = step;
        dtrain::ps::Node &node = *tables[0]->node;
        const int64_t deadline_ns = node.session().deadline(given.timeout_ns);
        Status s = node.checkpointer().restore(own, deadline_ns, restored);
        if (s == DTRAIN_OK && step_p != nullptr) *step_p = restored;
        return s;
    });
}

dtrain_status_t dtrain_checkpoint_newest(dtrain_table_t *table, uint64_t *step_p) {
    if (Status s = check_handle(table, "table"); s != DTRAIN_OK) return s;
    if (step_p == nullptr) return fail(DTRAIN_ERR_INVALID, "checkpoint_newest: step_p is NULL");
    return guard([&] { return table->node->checkpointer().newest(table->table, *step_p); });
}

dtrain_status_t dtrain_checkpoint_wait(dtrain_table_t *const *tables, uint32_t count,
                                       uint64_t after, const dtrain_checkpoint_params_t *params,
                                       uint64_t *step_p) {
    if (step_p == nullptr) return fail(DTRAIN_ERR_INVALID, "checkpoint_wait: step_p is NULL");
    return guard_new([&]() -> Status {
        dtrain_checkpoint_params_t given;
        if (Status s = dtrain::api::take(given, params); s != DTRAIN_OK) return s;
        std::vector<ClientTable *> own;
        if (Status s = take_tables(tables, count, own); s != DTRAIN_OK) return s;
        dtrain::ps::Node &node = *tables[0]->node;
        const int64_t deadline_ns = node.session().deadline(given.timeout_ns);
        return node.checkpointer().wait(own, after, deadline_ns, *step_p);
    });
}

dtrain_status_t dtrain_table_restored(const dtrain_table_t *table, uint64_t *step_p) {
    if (Status s = check_handle(table, "table"); s != DTRAIN_OK) return s;
    if (step_p == nullptr) return fail(DTRAIN_ERR_INVALID, "table_restored: step_p is NULL");
    if (!table->restored.has_value())
        return fail(DTRAIN_ERR_NOT_FOUND,
                    "table \"%s\" was not restored from a checkpoint when it was created",
                    table->table->name.c_str());
    *step_p = *table->restored;
    return DTRAIN_OK;
}
