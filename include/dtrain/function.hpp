// User-defined update rules: what a server does with pushed values (dtrain_function.h).
// SPDX-License-Identifier: Apache-2.0
#ifndef DTRAIN_FUNCTION_HPP
#define DTRAIN_FUNCTION_HPP
#include "../dtrain_function.h"
#include "types.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

namespace dtrain {
inline namespace cxx {

// If a step throws, the push or pull fails with the exception's text and, for an Error, its status.
using FunctionStep = std::function<void(const dtrain_function_batch_t &batch)>;

class Function {
  public:
    Function(std::string name, FunctionStep update)
        : name_(std::move(name)), update_(std::move(update)) {}
    // Adds an array of state: one number per element, or per row. F32, F64 or U64.
    Function &state(std::string name, DType dtype = DType::F32, bool per_row = false) {
        names_.push_back(std::move(name));
        states_.push_back({nullptr, static_cast<uint32_t>(dtype), per_row ? 1u : 0u});
        return *this;
    }
    // Sets the step that computes the result of a pull; by default pulls return the values.
    Function &get(FunctionStep step) {
        get_ = std::move(step);
        return *this;
    }
    // Sets the step that combines workers' pushes under BSP; by default they are summed.
    Function &aggregate(FunctionStep step) {
        aggregate_ = std::move(step);
        return *this;
    }

  private:
    friend class Context;
    // The result points into this object, which must not move afterwards.
    dtrain_function_t whole() {
        dtrain_function_t raw;
        DTRAIN_INIT(&raw);
        for (size_t i = 0; i < states_.size(); i++) states_[i].name = names_[i].c_str();
        raw.abi = DTRAIN_FUNCTION_ABI;
        raw.name = name_.c_str();
        raw.user = this;
        raw.states = states_.data();
        raw.state_count = static_cast<uint32_t>(states_.size());
        raw.update = &Function::call<&Function::update_>;
        raw.get = get_ ? &Function::call<&Function::get_> : dtrain_function_fn{};
        raw.aggregate = aggregate_ ? &Function::call<&Function::aggregate_> : dtrain_function_fn{};
        return raw;
    }
    template <FunctionStep Function::*step>
    static Status call(void *user, const dtrain_function_batch_t *batch) {
        try {
            (static_cast<Function *>(user)->*step)(*batch);
            return DTRAIN_OK;
        } catch (const Error &error) {
            return fail(*batch, error.status(), error.what());
        } catch (const std::exception &error) {
            return fail(*batch, DTRAIN_ERR_INVALID, error.what());
        }
    }
    static Status fail(const dtrain_function_batch_t &batch, Status status, const char *text) {
        if (batch.error_size > 0) {
            const size_t length = std::min<size_t>(std::strlen(text), batch.error_size - 1);
            std::memcpy(batch.error, text, length);
            batch.error[length] = '\0';
        }
        return status;
    }
    std::string name_;
    FunctionStep update_, get_, aggregate_;
    std::vector<std::string> names_;
    std::vector<dtrain_function_state_t> states_;
};

} // namespace cxx
} // namespace dtrain
#endif
