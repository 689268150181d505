// Tables that several steps use: what was acknowledged is there after a barrier, once.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "more_calls.h"
#include "program_memory.h"

namespace dtrain::simulator {

// Each step makes the table that it lacks. All ranks make the same calls.
class LongTables {
  public:
    LongTables() = default;
    LongTables(const LongTables &) = delete;
    int made() const;
    void destroy();
    // Whether all went well. step: for a new table's name.
    bool count(const Here &here, int step);
    bool count_rows(const Here &here, int step, size_t count);
    // A pull waits for the clocks of other workers: BSP for all, SSP for those of two clocks ago.
    bool clocks(const Here &here, int step, int random);

  private:
    bool clock(const Here &here);

    dtrain_table_t *dense_ = nullptr, *sparse_ = nullptr, *clocked_ = nullptr;
    double pushed_ = 0;        // to each element of the dense one
    Data<double> pushed_rows_; // to each element of a row
    int clock_ = 0;
    bool is_bsp_ = false;
};

} // namespace dtrain::simulator
