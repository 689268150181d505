// SPDX-License-Identifier: Apache-2.0
#include "ps/function_call.h"

#include "device/kernels.h"

#include <cstring>

namespace dtrain::ps {

FunctionCall::FunctionCall(const dtrain_function_t &function, const TableParams &params)
    : function_(function), params_(params), given_(to_given(params_)),
      size_(device::dtype_size(params.dtype)) {}

void FunctionCall::begin(uint64_t dim) {
    dim_ = dim;
    rows_.clear();
}

dtrain_function_row_t &FunctionCall::add(uint64_t key, void *values) {
    dtrain_function_row_t &row = rows_.emplace_back();
    row.key = key;
    row.values = values;
    return row;
}

template <class F> void FunctionCall::for_each_memory(F &&f) {
    for (dtrain_function_row_t &row : rows_) {
        f(row.values, dim_ * size_);
        for (size_t i = 0; i < params_.states.size(); ++i) {
            const FunctionState &state = params_.states[i];
            const uint64_t numbers = state.per_row ? 1 : dim_;
            if (row.state[i] != nullptr) f(row.state[i], numbers * device::dtype_size(state.dtype));
        }
    }
}

void FunctionCall::save() {
    saved_.clear();
    for_each_memory([&](const void *memory, uint64_t bytes) {
        const auto *from = static_cast<const char *>(memory);
        saved_.insert(saved_.end(), from, from + bytes);
    });
}

void FunctionCall::put_back() {
    const char *from = saved_.data();
    for_each_memory([&](void *memory, uint64_t bytes) {
        std::memcpy(memory, from, bytes);
        from += bytes;
    });
}

Reason FunctionCall::update(uint64_t version) { return call(function_.update, "update", version); }
Reason FunctionCall::get(uint64_t version) { return call(function_.get, "get", version); }
Reason FunctionCall::combine(uint64_t version) {
    return call(function_.aggregate, "aggregate", version);
}

Reason FunctionCall::call(dtrain_function_fn function, const char *what, uint64_t version) {
    if (rows_.empty()) return Reason::none;
    char said[max_told / 2] = "";
    dtrain_function_batch_t batch = {};
    batch.struct_size = sizeof batch;
    batch.dtype = params_.dtype;
    batch.rows = rows_.data();
    batch.count = rows_.size();
    batch.dim = dim_;
    batch.version = version;
    batch.params = &given_;
    batch.error = said;
    batch.error_size = sizeof said;
    save();
    const Status status = function(function_.user, &batch);
    if (status == DTRAIN_OK) return Reason::none;
    put_back();
    said[sizeof said - 1] = 0;
    const bool failure = status < 0 && status >= DTRAIN_ERR_INTERNAL;
    failure_.status = failure ? status : DTRAIN_ERR_INVALID;
    failure_.text = "function \"" + params_.function + "\": " + what + ": " +
                    (said[0] != 0 ? std::string(said) : std::string(status_name(status))) +
                    (failure ? "" : " (it returned " + std::to_string(status) + ")");
    return Reason::told;
}

} // namespace dtrain::ps
