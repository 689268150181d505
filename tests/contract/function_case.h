// Tables whose update rule is a function, and one to register.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "contract/ranks.h"
#include "dtrain_function.h"

#include <atomic>
#include <cmath>

namespace functions {

inline constexpr uint64_t length = 12000, row_length = 8;
inline const std::string plugins = PLUGIN_FOLDER;
inline const ranks::Options loaded = {{"ps.functions", plugins + "/libclipped_adagrad.so"}};

inline bool says(const char *text) { return ranks::last_error().find(text) != std::string::npos; }

inline dtrain_table_params_t params_of(uint32_t consistency, const char *function) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.consistency = consistency;
    params.rule = uint32_t(function != nullptr ? DTRAIN_RULE_FUNCTION : DTRAIN_RULE_ADAGRAD);
    params.function = function;
    params.learning_rate = 0.25;
    params.epsilon = 1e-6;
    params.clip_norm = 2;
    return params;
}
inline dtrain_table_params_t dense(uint32_t consistency, const char *function,
                                   uint64_t row = row_length) {
    dtrain_table_params_t params = params_of(consistency, function);
    params.length = length;
    params.row_length = row;
    return params;
}
inline dtrain_table_params_t sparse(uint32_t consistency, const char *function) {
    dtrain_table_params_t params = params_of(consistency, function);
    params.dim = row_length;
    params.initial = 0.5;
    return params;
}
inline dtrain_table_t *make(dtrain_comm_t *comm, const char *name,
                            const dtrain_table_params_t &params) {
    dtrain_table_t *table = nullptr;
    OK(dtrain_table_create(comm, name, &params, &table));
    return table;
}

struct Seen {
    std::atomic<int> updates{0}, gets{0}, aggregates{0};
};

inline const float *floats(const void *memory) { return static_cast<const float *>(memory); }

// Adds; counts the updates of each row; refuses 666, after it has changed all it was given.
inline dtrain_status_t add(void *user, const dtrain_function_batch_t *batch) {
    static_cast<Seen *>(user)->updates++;
    bool bad = false;
    for (uint64_t r = 0; r < batch->count; r++) {
        const dtrain_function_row_t &row = batch->rows[r];
        ++*static_cast<uint64_t *>(row.state[1]);
        for (uint64_t i = 0; i < batch->dim; i++) {
            static_cast<float *>(row.values)[i] += floats(row.pushed)[i];
            static_cast<double *>(row.state[0])[i] += batch->params->learning_rate;
            bad = bad || floats(row.pushed)[i] == 666;
        }
    }
    if (!bad) return DTRAIN_OK;
    snprintf(batch->error, size_t(batch->error_size), "666 of table of dim %u", batch->params->dim);
    return DTRAIN_ERR_CORRUPT;
}
inline dtrain_status_t doubled(void *user, const dtrain_function_batch_t *batch) {
    static_cast<Seen *>(user)->gets++;
    for (uint64_t r = 0; r < batch->count; r++)
        for (uint64_t i = 0; i < batch->dim; i++) {
            const float value = floats(batch->rows[r].values)[i];
            if (value == 13) return DTRAIN_ERR_STATE;
            static_cast<float *>(batch->rows[r].pulled)[i] = 2 * value;
        }
    return DTRAIN_OK;
}
inline dtrain_status_t greatest(void *user, const dtrain_function_batch_t *batch) {
    static_cast<Seen *>(user)->aggregates++;
    for (uint64_t r = 0; r < batch->count; r++)
        for (uint64_t i = 0; i < batch->dim; i++) {
            auto *sum = static_cast<float *>(batch->rows[r].values);
            if (floats(batch->rows[r].pushed)[i] == 777) return 7;
            sum[i] = std::fmax(sum[i], floats(batch->rows[r].pushed)[i]);
        }
    return DTRAIN_OK;
}

inline constexpr dtrain_function_state_t add_states[] = {{"rates", DTRAIN_F64, 0},
                                                         {"times", DTRAIN_U64, 1}};

inline dtrain_function_t function_of(Seen &seen, const char *name = "add") {
    dtrain_function_t function;
    DTRAIN_INIT(&function);
    function.abi = DTRAIN_FUNCTION_ABI;
    function.name = name;
    function.user = &seen;
    function.states = add_states;
    function.state_count = 2;
    function.update = add;
    return function;
}

} // namespace functions
