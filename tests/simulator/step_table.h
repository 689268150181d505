// A table that one step makes, uses and destroys.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "more_calls.h"
#include "program_memory.h"

#include <bit>
#include <utility>

namespace dtrain::simulator {

// All ranks make the same calls, in the same order where they wait for each other.
class StepTable {
  public:
    explicit StepTable(const Here &here) : here_(here) { DTRAIN_INIT(&params); }
    StepTable(const StepTable &) = delete;
    ~StepTable() {
        if (table_ != nullptr) dtrain_table_destroy(table_);
    }

    bool make(const char *kind, int step) {
        params.dtype = DTRAIN_F64;
        here_.caller.begin();
        return here_.caller.check(dtrain_table_create(here_.comm,
                                                      (kind + std::to_string(step)).c_str(),
                                                      &params, &table_),
                                  "creating a table", 2 * here_.caller.plan.op_timeout);
    }
    bool destroy() {
        here_.caller.begin(); // others may still wait for it
        return here_.caller.check(dtrain_table_destroy(std::exchange(table_, nullptr)),
                                  "destroying a table", 2 * here_.caller.plan.op_timeout);
    }
    template <class Call, class... Args> bool does(const char *name, Call call, Args... args) {
        here_.caller.begin();
        return here_.check(call(table_, args..., nullptr, nullptr), name);
    }
    bool barrier() { return here_.barrier(); }
    void expect(const Data<double> &values, double least, double most, const char *call) {
        for (size_t i = 0; i < values.size(); i++)
            if (!(values[i] >= least && values[i] <= most))
                fail_life("process %d: %s: element %zu is %g, not %g to %g", here_.caller.process,
                          call, i, values[i], least, most);
    }
    // Those who have not left, perhaps since they lacked memory.
    int present() const { return int(here_.caller.members.size()) - std::popcount(world->leavers); }

    dtrain_table_params_t params;

  protected:
    const Here &here_;
    dtrain_table_t *table_ = nullptr;
};

} // namespace dtrain::simulator
