// Functions of a server, for the targets of the table protocol.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/optimizer/function_registry.h"
#include "tests/fuzz/fuzz.h"

namespace dtrain::fuzz {

// "add" of f32 tables; "keeps", which has state and fails when a value is 7.
inline const ps::FunctionRegistry &table_functions() {
    static constexpr auto add = [](void *, const dtrain_function_batch_t *batch) -> Status {
        if (batch->dtype != DTRAIN_F32) return DTRAIN_ERR_UNSUPPORTED;
        for (uint64_t r = 0; r < batch->count; r++) {
            const dtrain_function_row_t &row = batch->rows[r];
            auto *values = static_cast<float *>(row.values);
            const auto *pushed = static_cast<const float *>(row.pushed);
            for (uint64_t i = 0; i < batch->dim; i++) values[i] += pushed[i];
        }
        return DTRAIN_OK;
    };
    static constexpr auto get = [](void *, const dtrain_function_batch_t *batch) -> Status {
        if (batch->dtype != DTRAIN_F32) return DTRAIN_ERR_UNSUPPORTED;
        for (uint64_t r = 0; r < batch->count; r++)
            std::copy_n(static_cast<const float *>(batch->rows[r].values), batch->dim,
                        static_cast<float *>(batch->rows[r].pulled));
        return DTRAIN_OK;
    };
    static constexpr auto keep = [](void *, const dtrain_function_batch_t *batch) -> Status {
        if (batch->dtype != DTRAIN_F32) return DTRAIN_ERR_UNSUPPORTED;
        for (uint64_t r = 0; r < batch->count; r++) {
            if (*static_cast<const float *>(batch->rows[r].values) == 7) return DTRAIN_ERR_INVALID;
            *static_cast<float *>(batch->rows[r].state[0]) += 1;
        }
        return DTRAIN_OK;
    };
    static const ps::FunctionRegistry *const all = [] {
        auto *registry = new ps::FunctionRegistry;
        dtrain_function_t function{};
        function.struct_size = sizeof function;
        function.abi = DTRAIN_FUNCTION_ABI;
        function.name = "add";
        function.update = function.aggregate = add;
        function.get = get;
        FUZZ_REQUIRE(registry->add(function) == DTRAIN_OK);
        static const dtrain_function_state_t state{"count", DTRAIN_F32, 1};
        function.name = "keeps";
        function.update = keep;
        function.get = function.aggregate = nullptr;
        function.states = &state;
        function.state_count = 1;
        FUZZ_REQUIRE(registry->add(function) == DTRAIN_OK);
        return registry;
    }();
    return *all;
}

} // namespace dtrain::fuzz
