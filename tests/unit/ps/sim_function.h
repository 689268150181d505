// The rule ADD of u64 tables as a function, and as a segment.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/function_registry.h"

enum class AddedBy { rule, function, segment };

inline dtrain::ps::FunctionRegistry &sim_functions() {
    static constexpr auto add = [](void *, const dtrain_function_batch_t *batch) {
        for (uint64_t r = 0; r < batch->count; ++r)
            for (uint64_t i = 0; i < batch->dim; ++i)
                static_cast<uint64_t *>(batch->rows[r].values)[i] +=
                    static_cast<const uint64_t *>(batch->rows[r].pushed)[i];
        return dtrain_status_t{DTRAIN_OK};
    };
    static constexpr auto get = [](void *, const dtrain_function_batch_t *batch) {
        for (uint64_t r = 0; r < batch->count; ++r)
            for (uint64_t i = 0; i < batch->dim; ++i)
                static_cast<uint64_t *>(batch->rows[r].pulled)[i] =
                    static_cast<uint64_t *>(batch->rows[r].values)[i];
        return dtrain_status_t{DTRAIN_OK};
    };
    static dtrain::ps::FunctionRegistry registry;
    static const bool added = [] {
        dtrain_function_t function = {};
        function.struct_size = sizeof function;
        function.abi = DTRAIN_FUNCTION_ABI;
        function.name = "add";
        function.update = function.aggregate = add;
        function.get = get;
        return registry.add(function) == DTRAIN_OK;
    }();
    (void)added;
    return registry;
}

inline void set_rule(AddedBy by, dtrain::ps::TableParams &params) {
    if (by == AddedBy::function) {
        params.rule = DTRAIN_RULE_FUNCTION;
        params.function = "add";
    } else if (by == AddedBy::segment) {
        if (params.dim == 0) params.row_length = 1;
        params.segments.resize(1);
        params.segments[0].count = 1;
    }
}
