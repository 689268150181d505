// The rule ADD of u64 and f32 tables as a function, and as a segment.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/optimizer/function_registry.h"

#include <algorithm>

enum class AddedBy { rule, function, segment };

// f(values, pushed, pulled, how many) for each row, in the table's type; nullptr: the call has
// none.
template <class F> dtrain_status_t for_each_row(const dtrain_function_batch_t &batch, F &&f) {
    auto visit = [&]<class T>(T) {
        for (uint64_t r = 0; r < batch.count; ++r) {
            const dtrain_function_row_t &row = batch.rows[r];
            f(static_cast<T *>(row.values), static_cast<const T *>(row.pushed),
              static_cast<T *>(row.pulled), batch.dim);
        }
    };
    if (batch.dtype == DTRAIN_F32)
        visit(float{});
    else
        visit(uint64_t{});
    return DTRAIN_OK;
}

inline dtrain::ps::FunctionRegistry &sim_functions() {
    static constexpr auto add = [](void *, const dtrain_function_batch_t *batch) {
        return for_each_row(*batch, [](auto *values, const auto *pushed, auto *, uint64_t dim) {
            for (uint64_t i = 0; i < dim; ++i) values[i] += pushed[i];
        });
    };
    static constexpr auto get = [](void *, const dtrain_function_batch_t *batch) {
        return for_each_row(*batch, [](auto *values, const auto *, auto *pulled, uint64_t dim) {
            std::copy_n(values, dim, pulled);
        });
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

// pinned: the second number of each row is the largest that was pushed.
inline void set_rule(AddedBy by, bool pinned, dtrain::ps::TableParams &params) {
    if (by == AddedBy::function) {
        params.rule = DTRAIN_RULE_FUNCTION;
        params.function = "add";
    } else if (by == AddedBy::segment || pinned) {
        if (params.dim == 0 && !pinned) params.row_length = 1;
        params.segments.resize(pinned ? 2 : 1);
        params.segments[0].count = 1;
        if (pinned) params.segments[1] = {.first = 1, .count = 1, .rule = DTRAIN_RULE_MAX};
    }
}
