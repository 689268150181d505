// A function whose state shows what it was given last.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain_function.h"
#include "ps/optimizer/function_registry.h"
#include "ps/table/table_params.h"

#include <cstdint>
#include <cstring>
#include <string>

namespace dtrain::ps {

// Keeps what was pushed last, and how many numbers there were.
inline dtrain_function_t keeper() {
    static const dtrain_function_state_t states[] = {{"last", DTRAIN_F32, 0},
                                                     {"numbers", DTRAIN_U64, 1}};
    dtrain_function_t function = {};
    function.struct_size = sizeof function;
    function.abi = DTRAIN_FUNCTION_ABI;
    function.name = "keeper";
    function.states = states;
    function.state_count = 2;
    function.update = [](void *, const dtrain_function_batch_t *batch) -> dtrain_status_t {
        for (uint64_t r = 0; r < batch->count; r++) {
            const dtrain_function_row_t &row = batch->rows[r];
            for (uint64_t i = 0; i < batch->dim; i++)
                static_cast<float *>(row.values)[i] += static_cast<const float *>(row.pushed)[i];
            std::memcpy(row.state[0], row.pushed, batch->dim * sizeof(float));
            *static_cast<uint64_t *>(row.state[1]) += batch->dim;
        }
        return DTRAIN_OK;
    };
    return function;
}

inline TableParams by_function(TableParams params, const dtrain_function_t &function) {
    params.rule = DTRAIN_RULE_FUNCTION;
    params.function = function.name;
    params.states = states_of(function);
    return params;
}

inline std::string bytes_of(const void *from, uint64_t bytes) {
    return {static_cast<const char *>(from), bytes};
}

} // namespace dtrain::ps
