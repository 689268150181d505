// Calls a user's function on rows of a server's part of a table.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain_function.h"
#include "ps/table/protocol.h"
#include "ps/table/table_params.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::ps {

// Usage: begin(), add() for each row, then update(), get() or combine() for all rows. The function
// is called once for each run of consecutive rows of equal length. After Reason::told, values and
// state of all rows are unchanged, and failure() has the error.
class FunctionCall {
  public:
    // function: must outlive this object; params: include the function's states.
    FunctionCall(const dtrain_function_t &function, const TableParams &params);
    FunctionCall(const FunctionCall &) = delete;
    FunctionCall &operator=(const FunctionCall &) = delete;

    bool gets() const { return function_.get != nullptr; }
    bool combines() const { return function_.aggregate != nullptr; }
    void set_rate(double rate) { given_.learning_rate = rate; }

    void begin();
    // The reference is valid until the next add().
    dtrain_function_row_t &add(uint64_t key, void *values, uint64_t dim);
    // version: the number of updates applied to the part before.
    Reason update(uint64_t version);
    Reason get(uint64_t version);
    Reason combine(uint64_t version);

    struct Failure {
        Status status = DTRAIN_OK;
        std::string text;
    };
    const Failure &failure() const { return failure_; }

  private:
    struct Batch { // rows of one length
        size_t first, count;
        uint64_t dim;
    };
    Reason call_all(dtrain_function_fn function, const char *what, uint64_t version);
    Reason call(const Batch &batch, dtrain_function_fn function, const char *what,
                uint64_t version);
    template <class F> void for_each_memory(F &&f); // f(memory, bytes) for all values and state
    void save();
    void put_back();

    const dtrain_function_t &function_;
    const TableParams params_;
    dtrain_table_params_t given_; // has pointers into params_
    const uint64_t size_;         // bytes of an element
    std::vector<dtrain_function_row_t> rows_;
    std::vector<Batch> batches_;
    std::vector<char> saved_;
    Failure failure_;
};

} // namespace dtrain::ps
