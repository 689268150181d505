// Collects rows, calls the user's function, and restores the rows if it fails.
// SPDX-License-Identifier: Apache-2.0
#include "ps/optimizer/function_call.h"

#include "base/callback.h"
#include "device/kernels.h"

#include <cstring>

namespace dtrain::ps {

FunctionCall::FunctionCall(const dtrain_function_t &function, const TableParams &params)
    : function_(function), params_(params), given_(to_given(params_)),
      size_(device::dtype_size(params.dtype)) {}

void FunctionCall::begin() {
    rows_.clear();
    batches_.clear();
}

dtrain_function_row_t &FunctionCall::add(uint64_t key, void *values, uint64_t dim) {
    if (batches_.empty() || batches_.back().dim != dim) batches_.push_back({rows_.size(), 0, dim});
    batches_.back().count++;
    dtrain_function_row_t &row = rows_.emplace_back();
    row.key = key;
    row.values = values;
    return row;
}

template <class F> void FunctionCall::for_each_memory(F &&f) {
    for (const Batch &batch : batches_)
        for (size_t r = batch.first; r < batch.first + batch.count; ++r) {
            f(rows_[r].values, batch.dim * size_);
            for (size_t i = 0; i < params_.states.size(); ++i) {
                const FunctionState &state = params_.states[i];
                const uint64_t numbers = state.per_row ? 1 : batch.dim;
                if (rows_[r].state[i] != nullptr)
                    f(rows_[r].state[i], numbers * device::dtype_size(state.dtype));
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

Reason FunctionCall::update(uint64_t version) {
    return call_all(function_.update, "update", version);
}
Reason FunctionCall::get(uint64_t version) { return call_all(function_.get, "get", version); }
Reason FunctionCall::combine(uint64_t version) {
    return call_all(function_.aggregate, "aggregate", version);
}

Reason FunctionCall::call_all(dtrain_function_fn function, const char *what, uint64_t version) {
    save();
    Reason reason = Reason::none;
    for (size_t i = 0; i < batches_.size() && reason == Reason::none; ++i)
        reason = call(batches_[i], function, what, version);
    if (reason != Reason::none) put_back();
    return reason;
}

Reason FunctionCall::call(const Batch &its, dtrain_function_fn function, const char *what,
                          uint64_t version) {
    char said[max_told / 2] = "";
    dtrain_function_batch_t batch = {};
    batch.struct_size = sizeof batch;
    batch.dtype = params_.dtype;
    batch.rows = &rows_[its.first];
    batch.count = its.count;
    batch.dim = its.dim;
    batch.version = version;
    batch.params = &given_;
    batch.error = said;
    batch.error_size = sizeof said;
    Status status = DTRAIN_ERR_INVALID;
    Thrown thrown;
    if (!returns([&] { status = function(function_.user, &batch); }, thrown))
        std::snprintf(said, sizeof said, "it threw %s", thrown.text);
    if (status == DTRAIN_OK) return Reason::none;
    said[sizeof said - 1] = 0;
    const bool failure = status < 0 && status >= DTRAIN_ERR_INTERNAL;
    failure_.status = failure ? status : DTRAIN_ERR_INVALID;
    failure_.text = "function \"" + params_.function + "\": " + what + ": " +
                    (said[0] != 0 ? std::string(said) : std::string(status_name(status))) +
                    (failure ? "" : " (it returned " + std::to_string(status) + ")");
    return Reason::told;
}

} // namespace dtrain::ps
